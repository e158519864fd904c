//! Decides which files make up a contract, and joins them to one.
//! It exists so that a contract of many routes can be kept in several files, each with an owner.
//! It refuses files outside the directory of the contract, a second level, and a name that two files declare.

use std::{
    ops::Range,
    path::{Component, Path, PathBuf},
};

use evenkeel_core::{Problem, codes};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    diag::Diagnostics,
    lints,
    outside::{self, CONTRACT_MAX, Outside},
    reader::shown,
};

/// The most files that a contract includes.
pub const INCLUDES_MAX: usize = 256;

/// A file of a contract.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) text: String,
}

/// Takes the files that a contract includes from where they were kept.
pub(super) fn kept(files: &[(String, String)]) -> Vec<Part> {
    let parts = files.iter().map(|(name, text)| Part {
        name: name.clone(),
        text: text.clone(),
    });
    parts.collect()
}

/// Reads the files that a contract includes; what is wrong with one is told at the place that names it.
pub(super) fn included(
    main: &str,
    document: &DeTable<'_>,
    diagnostics: &mut Diagnostics,
    files: &mut Vec<PathBuf>,
) -> Vec<Part> {
    let Some(value) = document.get(KEY) else {
        return Vec::new();
    };
    let Some(patterns) = value.get_ref().as_array() else {
        let (span, seen) = (value.span(), shown(value));
        tell(
            diagnostics,
            lints::WRONG_TYPE,
            span,
            &seen,
            "a list of paths",
            EXAMPLE,
        );
        return Vec::new();
    };
    let directory = directory_of(main);
    let mut known = vec![identity(Path::new(main))];
    let mut left = CONTRACT_MAX;
    let mut parts: Vec<Part> = Vec::new();
    for pattern in patterns.iter() {
        let span = pattern.span();
        let Some(text) = pattern.get_ref().as_str() else {
            let seen = shown(pattern);
            tell(
                diagnostics,
                lints::WRONG_TYPE,
                span,
                &seen,
                "a path in quotes",
                EXAMPLE,
            );
            continue;
        };
        let paths = match expand(&directory, text) {
            Ok(paths) => paths,
            Err((code, why)) => {
                let seen = format!("\"{}\": {why}", text.escape_debug());
                tell(diagnostics, code, span, &seen, ALLOWED, EXAMPLE);
                continue;
            }
        };
        for path in paths {
            let shown = path.display().to_string();
            let own = identity(&path);
            if known.contains(&own) {
                let seen = format!("{shown}, which is part of the contract already");
                let mend = "remove it here, or from the other place";
                tell(
                    diagnostics,
                    lints::INCLUDE_TWICE,
                    span.clone(),
                    &seen,
                    "each file once",
                    mend,
                );
                continue;
            }
            known.push(own);
            if parts.len() == INCLUDES_MAX {
                let seen = format!("more than {INCLUDES_MAX} files");
                let allowed = format!("at most {INCLUDES_MAX}");
                tell(
                    diagnostics,
                    codes::OUT_OF_RANGE,
                    span,
                    &seen,
                    &allowed,
                    "join some of them",
                );
                return parts;
            }
            files.push(path.clone());
            match outside::read(&path, left) {
                Ok(text) => {
                    left -= text.len() as u64;
                    parts.push(Part { name: shown, text });
                }
                Err(why) => {
                    let allowed = format!("files in UTF-8, of at most {} MiB together", CONTRACT_MAX >> 20);
                    let seen = format!("{shown}: {why}");
                    let mend = "mend the file, or remove it here";
                    tell(
                        diagnostics,
                        lints::UNREADABLE_FILE,
                        span.clone(),
                        &seen,
                        &allowed,
                        mend,
                    );
                }
            }
        }
    }
    parts
}

const KEY: &str = "include";
const ALLOWED: &str = "paths below the directory of the contract, with `*` in the last part for any name";
const EXAMPLE: &str = "write `include = [\"routes/*.toml\"]`, say";

fn tell(
    diagnostics: &mut Diagnostics,
    code: &'static str,
    span: Range<usize>,
    seen: &str,
    allowed: &str,
    mend: &str,
) {
    let problem = Problem {
        code,
        place: KEY.to_owned(),
        seen: seen.to_owned(),
        allowed: allowed.to_owned(),
        mend: mend.to_owned(),
    };
    diagnostics.add(problem, Some(span));
}

/// Returns the directory of a file, as a path that can be joined.
pub(super) fn directory_of(file: &str) -> PathBuf {
    Path::new(file)
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .to_owned()
}

/// Returns by what a file is known to be the same under another name.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the files that a pattern names, sorted.
fn expand(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, (&'static str, String)> {
    let path = Path::new(pattern);
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(name), true) = (name, is_below) else {
        return Err((
            codes::BAD_VALUE,
            "not below the directory of the contract".to_owned(),
        ));
    };
    if !pattern.contains('*') {
        let path = directory.join(path);
        return if path.is_file() {
            Ok(vec![path])
        } else {
            Err((lints::INCLUDE_NOT_THERE, "there is no such file".to_owned()))
        };
    }
    let above = path.parent().unwrap_or_else(|| Path::new(""));
    if above.to_string_lossy().contains('*') {
        return Err((codes::BAD_VALUE, "`*` stands before the last part".to_owned()));
    }
    let listed = directory.join(above);
    let from = if listed.as_os_str().is_empty() {
        Path::new(".")
    } else {
        &listed
    };
    let entries = std::fs::read_dir(from).map_err(|error| (lints::INCLUDE_NOT_THERE, error.to_string()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|entry| !entry.starts_with('.') && matches(name, entry))
        .map(|entry| listed.join(entry))
        .filter(|path| path.is_file())
        .take(INCLUDES_MAX + 1)
        .collect();
    found.sort();
    if found.is_empty() {
        return Err((lints::INCLUDE_NOT_THERE, "no file has such a name".to_owned()));
    }
    Ok(found)
}

/// Tells whether a name is as a pattern says, where `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Parses a file of a contract; `None`, and problems, if it is not TOML.
pub(super) fn parse<'t>(text: &'t str, start: usize, diagnostics: &mut Diagnostics) -> Option<DeTable<'t>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(document.into_inner());
    }
    for error in errors {
        let problem = Problem {
            code: lints::SYNTAX,
            place: "syntax".to_owned(),
            seen: error.message().to_owned(),
            allowed: "TOML 1.1".to_owned(),
            mend: "correct the marked place".to_owned(),
        };
        let span = error.span().map(|span| span.start + start..span.end + start);
        diagnostics.add(problem, span.or(Some(start..start)));
    }
    None
}

/// Joins the files to one table. What two of them declare is told with both places.
pub(super) fn join<'t>(
    main: (&str, DeTable<'t>),
    others: Vec<(&str, usize, DeTable<'t>)>,
    diagnostics: &mut Diagnostics,
    files: &mut Vec<PathBuf>,
) -> DeTable<'t> {
    let directory = directory_of(main.0);
    let mut outside = Outside {
        diagnostics,
        directory: &directory,
        files,
        start: 0,
    };
    let mut root = outside.table("", main.1);
    root.remove(KEY);
    for (name, start, table) in others {
        let directory = directory_of(name);
        let mut outside = Outside {
            diagnostics,
            directory: &directory,
            files,
            start,
        };
        for (key, value) in outside.table("", table) {
            if key.get_ref() == KEY {
                let mend = "name its files in the contract itself";
                let seen = format!("an include in {name}, which is included");
                tell(
                    diagnostics,
                    lints::INCLUDE_NESTED,
                    key.span(),
                    &seen,
                    "one level",
                    mend,
                );
                continue;
            }
            add(&mut root, key, value, diagnostics);
        }
    }
    root
}

type Key<'t> = Spanned<std::borrow::Cow<'t, str>>;

/// Adds what stands at the top of an included file.
fn add<'t>(root: &mut DeTable<'t>, key: Key<'t>, value: Spanned<DeValue<'t>>, diagnostics: &mut Diagnostics) {
    let name = key.get_ref().clone();
    let Some(existing) = root.get_mut(name.as_ref()) else {
        root.insert(key, value);
        return;
    };
    let earlier = existing.span();
    match (existing.get_mut(), value.into_inner()) {
        (DeValue::Table(into), DeValue::Table(from)) => {
            for (key, value) in from {
                match into.get_key_value(key.get_ref().as_ref()) {
                    Some((earlier, _)) => twice(diagnostics, &name, &key, &earlier.span()),
                    None => drop(into.insert(key, value)),
                }
            }
        }
        (DeValue::Array(into), DeValue::Array(from)) => {
            for item in from {
                into.push(item);
            }
        }
        _ => twice(diagnostics, "", &key, &earlier),
    }
}

fn twice(diagnostics: &mut Diagnostics, table: &str, key: &Key<'_>, earlier: &Range<usize>) {
    let spot = diagnostics.sources().spot(earlier);
    let seen = format!("declared in {}, line {} too", spot.file, spot.line);
    let name = key.get_ref();
    let problem = Problem {
        code: lints::DUPLICATE_NAME,
        place: if table.is_empty() {
            name.clone().into_owned()
        } else {
            format!("{table}.{name}")
        },
        seen,
        allowed: "each name in one file".to_owned(),
        mend: "remove one of them, or rename it".to_owned(),
    };
    diagnostics.add(problem, Some(key.span()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_in_one_name() {
        for (pattern, name, fits) in [
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml", true),
            ("*.toml", "a.toml.bak", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn only_paths_below_the_contract_are_included() {
        for pattern in ["/etc/passwd", "../a.toml", "a/../../b.toml", "", ".", "*/a.toml"] {
            assert!(expand(Path::new("."), pattern).is_err(), "{pattern}");
        }
    }
}
