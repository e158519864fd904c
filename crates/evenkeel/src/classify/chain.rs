//! Decides how far an error is followed to the one that caused it.
//! It exists because clients wrap the errors of sockets, and only the innermost says what happened.
//! It refuses to follow without end: a chain that is longer than any real one is cut.

use std::{error::Error, io, iter::successors};

/// The most links that are looked at. Real chains have about six.
const LINKS_MAX: usize = 32;

/// Returns the error, then what caused it, and so on.
///
/// An I/O error names as its source what caused the error inside it, and so leaves that one out; here it is in.
pub(super) fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |error: &&'e (dyn Error + 'static)| {
        let error: &'e (dyn Error + 'static) = *error;
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inside {
            Some(inside) => Some(inside as &'e (dyn Error + 'static)),
            None => error.source(),
        }
    })
    .take(LINKS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    /// An error that is its own cause.
    #[derive(Debug)]
    struct Loop;

    impl fmt::Display for Loop {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("loop")
        }
    }

    impl Error for Loop {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }

    #[test]
    fn a_chain_without_an_end_is_cut() {
        assert_eq!(chain(&Loop).count(), LINKS_MAX);
    }

    #[test]
    fn what_an_io_error_holds_is_part_of_the_chain() {
        let error = io::Error::other(io::Error::other(fmt::Error));
        assert!(chain(&error).any(|error| error.is::<fmt::Error>()));
        assert_eq!(chain(&error).count(), 3);
    }
}
