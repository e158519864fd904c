//! Decides what may be said on the command line.
//! It exists so that a quick look and a careful run are the same program.
//! It refuses what it does not know, with what it does.

use std::{path::PathBuf, time::Duration};

/// What `--help` prints.
pub const USAGE: &str = "usage: cargo bench -- [--quick] [--rounds N] [--ms N] [--filter TEXT] [--json FILE]
  --rounds N     measure everything N times in turn (default 11)
  --ms N         spend about N milliseconds on each figure of a round (default 60)
  --quick        3 rounds of 20 ms: for a first look, not for conclusions
  --filter TEXT  only the lines that contain TEXT, such as \"row 9\" or \"recloser\"
  --json FILE    also write every figure and verdict to FILE";

/// How to measure.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// How often everything is measured; at least 1.
    pub rounds: usize,
    /// The time spent on each figure of a round; at least 1 ms.
    pub span: Duration,
    /// Only lines that contain this.
    pub filter: String,
    /// Where to write the figures.
    pub json: Option<PathBuf>,
    /// Only say what may be said.
    pub help: bool,
}

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// The argument that is not understood, and what is allowed.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            rounds: 11,
            span: Duration::from_millis(60),
            filter: String::new(),
            json: None,
            help: false,
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} needs a value\n{USAGE}"))
            };
            match argument.as_str() {
                "--rounds" => options.rounds = usize::try_from(number("--rounds", &value()?)?).unwrap_or(1),
                "--ms" => options.span = Duration::from_millis(number("--ms", &value()?)?),
                "--filter" => options.filter = value()?,
                "--json" => options.json = Some(value()?.into()),
                "--quick" => (options.rounds, options.span) = (3, Duration::from_millis(20)),
                "--help" => options.help = true,
                "--bench" => {} // `cargo bench` adds it
                unknown => return Err(format!("{unknown}: not an option\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number @ 1..=10_000) => Ok(number),
        Ok(_) | Err(_) => Err(format!("{option} {text}: write a whole number from 1 to 10000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_last_word_on_a_number_holds() {
        let options = read("--bench --quick --rounds 5").unwrap();
        assert_eq!((options.rounds, options.span), (5, Duration::from_millis(20)));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert!(
            read("--round 5")
                .unwrap_err()
                .starts_with("--round: not an option")
        );
        assert!(read("--json").unwrap_err().starts_with("--json needs a value"));
        assert!(read("--ms 0").unwrap_err().starts_with("--ms 0: write a whole"));
        assert!(read("--ms 10001").is_err());
        assert!(read("--ms 10000").is_ok());
    }
}
