//! Decides how the changes that a contract asks for are made to one message.
//! It exists so that they are made in one place: after what ends at this hop is gone, and before own fields are added.
//! It refuses to change a path that does not begin with the prefix to be taken off, and any query.

use http::{HeaderMap, Uri, uri::PathAndQuery};

use crate::config::{FieldChanges, Rewrite};

impl FieldChanges {
    /// Makes the changes.
    pub(super) fn apply(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name.clone(), value.clone());
        }
    }
}

impl Rewrite {
    /// Returns the target that the dependency is asked for, in origin form; `None` if it stays as it is.
    pub(crate) fn target(&self, uri: &Uri) -> Option<Uri> {
        if self.strip_prefix.is_none() && self.add_prefix.is_none() {
            return None;
        }
        let path = uri.path();
        let rest = self
            .strip_prefix
            .as_deref()
            .and_then(|prefix| path.strip_prefix(prefix))
            // Whole segments only: /api is no prefix of /apis.
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .unwrap_or(path);
        let added = self.add_prefix.as_deref().unwrap_or_default();
        let mut target = String::with_capacity(added.len() + uri.path().len() + 1);
        target.push_str(added);
        target.push_str(rest);
        if target.is_empty() {
            target.push('/');
        }
        if let Some(query) = uri.query() {
            target.push('?');
            target.push_str(query);
        }
        // Made of a valid path and a checked prefix.
        PathAndQuery::try_from(target).ok().map(Uri::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn target(strip: Option<&str>, add: Option<&str>, uri: &'static str) -> String {
        let rewrite = Rewrite {
            strip_prefix: strip.map(str::to_owned),
            add_prefix: add.map(str::to_owned),
            ..Rewrite::default()
        };
        let uri = Uri::from_static(uri);
        rewrite.target(&uri).unwrap_or(uri).to_string()
    }

    #[test]
    fn a_prefix_is_whole_segments_and_the_query_stays() {
        for (strip, add, from, to) in [
            (None, None, "/api/x?y", "/api/x?y"),
            (Some("/api"), None, "/api/x?y=/api", "/x?y=/api"),
            (Some("/api"), None, "/api", "/"),
            (Some("/api"), None, "/api?y", "/?y"),
            (Some("/api"), None, "/api/", "/"),
            (Some("/api"), None, "/apis/x", "/apis/x"),
            (Some("/api"), None, "/x/api", "/x/api"),
            (None, Some("/v1"), "/x", "/v1/x"),
            (Some("/api"), Some("/v1/a"), "/api/x%2Fy?", "/v1/a/x%2Fy?"),
            (Some("/api"), Some("/v1"), "/api", "/v1"),
            (Some("/api"), Some("/v1"), "http://a.example/api/x", "/v1/x"),
        ] {
            assert_eq!(target(strip, add, from), to, "{from}");
        }
    }

    #[test]
    fn setting_a_field_leaves_one_line_of_it_and_removing_none() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2"), ("c", "1")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let changes = FieldChanges {
            remove: vec!["a".parse().unwrap()],
            set: vec![("b".parse().unwrap(), HeaderValue::from_static("new"))],
        };
        changes.apply(&mut headers);
        let mut lines: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        lines.sort_unstable();
        assert_eq!(lines, [("b", "new"), ("c", "1")]);
    }
}
