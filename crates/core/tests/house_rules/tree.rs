//! Decides which files the house rules look at: everything below the root that `.gitignore` does
//! not exclude, so a file is judged before it is committed and without asking git. It refuses to
//! guess: a `.gitignore` line in a shape it does not know is an error, not a file judged wrongly.

#![expect(
    clippy::disallowed_methods,
    reason = "the engine reads no files; the rules about its files must"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One file of the repository.
pub(crate) struct File {
    /// Path below the root, with `/` between its parts.
    pub(crate) path: String,
    /// Size on disk.
    pub(crate) bytes: usize,
    /// The content, or nothing when the file is not UTF-8 text.
    pub(crate) text: String,
}

impl File {
    /// Returns whether the file is Rust code of a package: `crates/*/src/**.rs`.
    pub(crate) fn is_source(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.next() == Some("crates") && parts.nth(1) == Some("src") && self.path.ends_with(".rs")
    }
}

/// Returns the root of the repository, two levels above this package.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every file below the root that `.gitignore` does not exclude, in order of path.
pub(crate) fn tracked() -> Vec<File> {
    let root = root();
    let ignore = fs::read_to_string(root.join(".gitignore")).expect("the root has a .gitignore");
    let ignored: Vec<Pattern> = ignore
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| Pattern::parse(line).expect("a line of .gitignore has a known shape"))
        .collect();
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a folder of the repository is readable") {
            let entry = entry.expect("an entry of the repository is readable");
            let kind = entry.file_type().expect("an entry has a type");
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            let skipped = name == ".git"
                || ignored
                    .iter()
                    .any(|pattern| pattern.matches(&path, kind.is_dir()));
            if skipped || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let content = fs::read(root.join(&path)).expect("a file of the repository is readable");
            files.push(File {
                path: path.to_string_lossy().into_owned(),
                bytes: content.len(),
                text: String::from_utf8(content).unwrap_or_default(),
            });
        }
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    files
}

/// One line of `.gitignore`, in the shapes this repository uses.
#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    /// `name/`: a folder of that name anywhere.
    Folder(String),
    /// `*.end`: any file whose name ends so.
    Ending(String),
    /// `/path`, with or without a final slash: this one place.
    Place(String),
}

impl Pattern {
    /// Reads one line that is neither empty nor a comment.
    fn parse(line: &str) -> Result<Self, String> {
        let plain = |text: &str| !text.is_empty() && !text.contains(['*', '?', '[', '!', '/', ' ']);
        if let Some(ending) = line.strip_prefix('*').filter(|ending| plain(ending)) {
            return Ok(Self::Ending(ending.to_owned()));
        }
        if let Some(name) = line.strip_suffix('/').filter(|name| plain(name)) {
            return Ok(Self::Folder(name.to_owned()));
        }
        let place = line.strip_prefix('/').map(|place| place.trim_end_matches('/'));
        if let Some(place) = place.filter(|place| place.split('/').all(plain)) {
            return Ok(Self::Place(place.to_owned()));
        }
        Err(format!(
            "`{line}` is not one of `name/`, `*.end`, `/path`; teach house_rules/tree.rs the shape"
        ))
    }

    /// Returns whether git would leave the entry at `path` out.
    fn matches(&self, path: &Path, is_folder: bool) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            Self::Folder(folder) => is_folder && name == folder.as_str(),
            Self::Ending(ending) => name.ends_with(ending.as_str()),
            Self::Place(place) => path == Path::new(place),
        }
    }
}

#[test]
fn ignore_lines_mean_what_git_means() {
    let folder = Pattern::parse("target/").expect("a folder");
    assert!(folder.matches(Path::new("bench/target"), true));
    assert!(!folder.matches(Path::new("bench/target"), false));
    let ending = Pattern::parse("*.profraw").expect("an ending");
    assert!(ending.matches(Path::new("crates/core/a.profraw"), false));
    let place = Pattern::parse("/bench/out/").expect("a place");
    assert!(place.matches(Path::new("bench/out"), true));
    assert!(!place.matches(Path::new("docs/bench/out"), true));
}

#[test]
fn an_ignore_line_of_unknown_shape_is_an_error() {
    for line in ["docs/**/draft", "!keep", "name", "a b/", "*"] {
        assert!(Pattern::parse(line).is_err(), "{line}");
    }
}
