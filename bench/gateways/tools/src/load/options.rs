//! Decides how the load is described on a command line: words of the form `name=value`.
//!
//! It exists so that a script reads as what it does. It refuses missing, unknown and repeated
//! names, and values that do not parse, each by its name.

use std::collections::BTreeMap;
use std::io;
use std::str::FromStr;

use crate::start::invalid;

/// Words of a command line that have not been taken yet.
#[derive(Debug)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// Reads the words.
    ///
    /// # Errors
    /// `InvalidInput`, naming the word, when it has no `=` or repeats a name.
    pub fn read(words: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut read = BTreeMap::new();
        for word in words {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| invalid(format!("argument {word:?}: want name=value")))?;
            if read.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(invalid(format!("argument {word:?}: {name} is given twice")));
            }
        }
        Ok(Self(read))
    }

    /// Takes a value.
    ///
    /// # Errors
    /// `InvalidInput`, naming it, when it is missing or does not parse.
    pub fn take<T: FromStr>(&mut self, name: &str) -> io::Result<T> {
        let value = self
            .0
            .remove(name)
            .ok_or_else(|| invalid(format!("missing argument: {name}=")))?;
        value
            .parse()
            .map_err(|_| invalid(format!("argument {name}={value:?} does not parse")))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// `InvalidInput`, naming a word that nobody took.
    pub fn end(self) -> io::Result<()> {
        match self.0.keys().next() {
            Some(name) => Err(invalid(format!("argument {name}= is not known here"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> io::Result<Options> {
        Options::read(words.iter().map(ToString::to_string))
    }

    #[test]
    fn a_value_is_taken_by_its_name() {
        let mut options = options(&["port=80", "path=/a=b"]).unwrap();
        assert_eq!(options.take::<String>("path").unwrap(), "/a=b");
        assert_eq!(options.take::<u16>("port").unwrap(), 80);
        options.end().unwrap();
    }

    #[test]
    fn what_is_missing_wrong_repeated_or_unknown_is_named() {
        let told = |error: io::Error| error.to_string();
        assert!(told(options(&["port"]).unwrap_err()).contains("\"port\": want name=value"));
        assert!(told(options(&["a=1", "a=2"]).unwrap_err()).contains("a is given twice"));
        let mut left = options(&["port=x", "more=1"]).unwrap();
        assert!(told(left.take::<u16>("port").unwrap_err()).contains("port=\"x\" does not parse"));
        assert!(told(left.take::<u16>("port").unwrap_err()).contains("missing argument: port="));
        assert!(told(left.end().unwrap_err()).contains("more= is not known"));
    }
}
