//! Decides what `X-Data-Freshness` says about the data in an answer.
//! It exists as the one label a page or a script can read without parsing anything.
//! It refuses to appear on refusals: an answer without data has no freshness, and the caller then sets none.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The field name.
pub const X_DATA_FRESHNESS: HeaderName = HeaderName::from_static("x-data-freshness");

/// How good the data in an answer is, from best to worst.
///
/// ```
/// use evenkeel_http::freshness::{DataFreshness, X_DATA_FRESHNESS};
/// use http::HeaderMap;
///
/// // A page shows its worst part.
/// let parts = [DataFreshness::Fresh, DataFreshness::Stale];
/// let page = parts.into_iter().max().unwrap_or(DataFreshness::Fresh);
/// let mut headers = HeaderMap::new();
/// page.set_on(&mut headers);
/// assert_eq!(headers[X_DATA_FRESHNESS], "stale");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataFreshness {
    /// Just asked for, or within its lifetime.
    Fresh,
    /// The last good data, past its lifetime.
    Stale,
    /// From another source.
    Alternate,
    /// A declared constant.
    Default,
    /// A page without one of its parts.
    Partial,
}

impl DataFreshness {
    /// Every value, from best to worst.
    pub const ALL: [Self; 5] = [
        Self::Fresh,
        Self::Stale,
        Self::Alternate,
        Self::Default,
        Self::Partial,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Alternate => "alternate",
            Self::Default => "default",
            Self::Partial => "partial",
        }
    }

    /// Sets the field, in place of any that a dependency sent: the label is this gateway's own statement.
    pub fn set_on(self, headers: &mut HeaderMap) {
        headers.insert(X_DATA_FRESHNESS, HeaderValue::from_static(self.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    #[test]
    fn the_words_are_those_of_the_contract_from_best_to_worst() {
        let mut sorted = DataFreshness::ALL;
        sorted.sort_unstable();
        assert_eq!(
            sorted.map(DataFreshness::as_str),
            ["fresh", "stale", "alternate", "default", "partial"]
        );
    }

    #[test]
    fn a_label_sent_by_a_dependency_is_replaced() {
        let mut map = headers([("x-data-freshness", "fresh"), ("x-data-freshness", "x")]);
        DataFreshness::Default.set_on(&mut map);
        assert_eq!(map, headers([("x-data-freshness", "default")]));
    }
}
