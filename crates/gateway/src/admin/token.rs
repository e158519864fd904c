//! Decides who may change something: whoever can show the token.
//! It exists because everybody on a machine reaches loopback, containers of one pod and pages in a browser included,
//! and not everybody there may switch a product off.
//! It refuses short tokens, comparing in a way that tells how much of a guess was right, and to write its own where
//! others could read it.

use std::{
    fmt, fs,
    hint::black_box,
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use evenkeel_http::problem::ProblemKind;
use http::{HeaderMap, header::AUTHORIZATION};

use super::reply::Refused;

/// The fewest characters of a token that somebody chose.
pub const TOKEN_MIN: usize = 16;
/// The most characters of one.
const TOKEN_MAX: usize = 4096;
/// Random bytes of a token that the gateway makes.
const RANDOM: usize = 32;

/// What opens changes.
pub(crate) struct Token {
    secret: Option<String>,
    /// The file that this process has made, and takes away when it ends.
    made: Option<PathBuf>,
    /// Why there is none.
    missing: String,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("is_set", &self.secret.is_some())
            .field("made", &self.made)
            .finish_non_exhaustive()
    }
}

impl Token {
    /// Takes the token that somebody chose from its file; without one makes a token for this process.
    ///
    /// # Errors
    /// When the file cannot be read, or what is in it is too short or too long.
    pub(crate) fn of(file: Option<&Path>, address: SocketAddr) -> io::Result<Self> {
        let Some(path) = file else {
            return Ok(Self::made_for(address));
        };
        Ok(Self {
            secret: Some(read(path)?),
            made: None,
            missing: String::new(),
        })
    }

    /// Makes a token for this process and writes it where the command line of the same user looks for it. Where that is
    /// not possible there is none, and nothing can be changed.
    fn made_for(address: SocketAddr) -> Self {
        match make(address) {
            Ok((secret, path)) => Self {
                secret: Some(secret),
                made: Some(path),
                missing: String::new(),
            },
            Err(error) => Self {
                secret: None,
                made: None,
                missing: format!("no token could be written: {error}"),
            },
        }
    }

    /// Returns why there is none.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.secret.is_none().then_some(&*self.missing)
    }

    /// Lets a request pass that shows the token.
    pub(super) fn opens(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let refused = |detail: &str| Err(Refused::because(ProblemKind::TokenMissing, detail));
        let Some(secret) = &self.secret else {
            return refused(&format!("{}; set gateway.admin_token_file", self.missing));
        };
        let mut lines = headers.get_all(AUTHORIZATION).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return refused("send `Authorization: Bearer <token>` once");
        };
        let shown = line.as_bytes();
        let shown = match shown.split_at_checked(7) {
            Some((scheme, shown)) if scheme.eq_ignore_ascii_case(b"bearer ") => shown,
            Some(_) | None => return refused("send `Authorization: Bearer <token>`"),
        };
        if is_same(shown, secret.as_bytes()) {
            Ok(())
        } else {
            refused("the token is another one")
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // Another gateway may have taken the address over by now; what is there is then its own.
            if read(path).ok() == self.secret {
                // A file that stays opens nothing: the next process makes its own.
                drop(fs::remove_file(path));
            }
        }
    }
}

/// Compares without telling by its time where the first difference is.
fn is_same(shown: &[u8], secret: &[u8]) -> bool {
    let mut different = shown.len() ^ secret.len();
    for (index, byte) in secret.iter().enumerate() {
        different |= usize::from(black_box(shown.get(index).copied().unwrap_or(0)) ^ byte);
    }
    black_box(different) == 0
}

/// Reads a token from a file, without the blanks around it.
///
/// # Errors
/// When the file cannot be read, or what is in it is no token.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?
        .take(TOKEN_MAX as u64 + 1)
        .read_to_string(&mut text)?;
    let token = text.trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain || !(TOKEN_MIN..=TOKEN_MAX).contains(&token.len()) {
        return Err(io::Error::other(format!(
            "{}: {} characters; a token has {TOKEN_MIN} to {TOKEN_MAX} characters of visible ASCII and no blanks",
            path.display(),
            token.chars().count()
        )));
    }
    Ok(token.to_owned())
}

/// Returns where the token of a gateway with this administration port may be, the most private place first.
#[must_use]
pub fn places(address: SocketAddr) -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(|directory| PathBuf::from(directory).join("evenkeel"));
    let user = rustix::process::geteuid().as_raw();
    let shared = std::env::temp_dir().join(format!("evenkeel-{user}"));
    own.into_iter()
        .chain([shared])
        .map(|directory| directory.join(format!("admin-{}.token", address.port())))
        .collect()
}

fn make(address: SocketAddr) -> io::Result<(String, PathBuf)> {
    let mut random = [0; RANDOM];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut failed = io::Error::other("there is no place for it");
    for path in places(address) {
        match write(&path, &secret) {
            Ok(()) => return Ok((secret, path)),
            Err(error) => failed = io::Error::other(format!("{}: {error}", path.display())),
        }
    }
    Err(failed)
}

/// Writes the token to a file that nobody else can read, in a directory that is nobody else's.
fn write(path: &Path, secret: &str) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // Of what was there before, not of what a link leads to.
    let found = fs::symlink_metadata(directory)?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !own || found.mode() & 0o022 != 0 {
        return Err(io::Error::other(
            "the directory is somebody else's, or others may write there",
        ));
    }
    let next = path.with_extension(format!("new-{}", std::process::id()));
    // What a process with the same number left.
    drop(fs::remove_file(&next));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&next)?;
    file.write_all(secret.as_bytes())?;
    file.write_all(b"\n")?;
    fs::rename(&next, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn token(secret: &str) -> Token {
        Token {
            secret: Some(secret.to_owned()),
            made: None,
            missing: String::new(),
        }
    }

    #[test]
    fn only_the_whole_token_opens() {
        let token = token("0123456789abcdef");
        let opens = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, HeaderValue::from_static(line));
            }
            token.opens(&headers).is_ok()
        };
        assert!(opens(&["Bearer 0123456789abcdef"]));
        assert!(opens(&["bearer 0123456789abcdef"]));
        for lines in [
            &[][..],
            &[""],
            &["Bearer "],
            &["Bearer 0123456789abcde"],
            &["Bearer 0123456789abcdef0"],
            &["Bearer 0123456789abcdeF"],
            &["Basic 0123456789abcdef"],
            &["0123456789abcdef"],
            &["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"],
        ] {
            assert!(!opens(lines), "{lines:?}");
        }
    }

    #[test]
    fn without_a_token_nothing_opens() {
        let none = Token {
            secret: None,
            made: None,
            missing: "no room".to_owned(),
        };
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer "))]);
        let refused = none.opens(&headers).unwrap_err();
        assert!(refused.detail.contains("no room"), "{}", refused.detail);
    }
}
