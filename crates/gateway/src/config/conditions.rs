//! Decides what a request has to be, beside its path, for a route to cover it: host, method, fields.
//! It exists so that one path can mean different things, and still each request has exactly one route.
//! It refuses two routes that could both claim a request with equal right.

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::{keys, lints, reader::Fields};

/// What a request has to be, beside its path. Without any condition every request is covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// One of these hosts; none means any.
    pub hosts: Vec<Host>,
    /// One of these methods; none means any. GET covers HEAD.
    pub methods: Vec<Method>,
    /// All of these fields.
    pub fields: Vec<Field>,
}

/// A host, or all below a domain. In lower case, without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// This host.
    Exactly(String),
    /// Every host that ends with this text, which begins with a dot.
    Below(String),
}

/// A field that has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: HeaderName,
    /// It has one line, with exactly this value; `None` means any.
    pub value: Option<HeaderValue>,
}

/// How narrow conditions are: the host counts most, then the method, then the number of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    host: u8,
    method: bool,
    fields: usize,
}

/// The most hosts, methods or fields of one route.
pub const CONDITIONS_MAX: usize = 32;

impl Host {
    fn is(&self, host: &str) -> bool {
        match self {
            Self::Exactly(own) => own.eq_ignore_ascii_case(host),
            Self::Below(end) => host
                .len()
                .checked_sub(end.len())
                .filter(|above| *above > 0)
                .and_then(|above| host.get(above..))
                .is_some_and(|tail| tail.eq_ignore_ascii_case(end)),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exactly(host), any) | (any, Self::Exactly(host)) => any.is(host),
            (Self::Below(one), Self::Below(two)) => {
                one.ends_with(two.as_str()) || two.ends_with(one.as_str())
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (below, host) = match text.strip_prefix("*.") {
            Some(host) => (true, host),
            None => (false, text),
        };
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._[]:".contains(&byte);
        let is_name = !host.is_empty() && !host.starts_with('.') && host.bytes().all(plain);
        // A colon belongs to an address in brackets, never to a port.
        let has_port = host.contains(':') && !host.ends_with(']');
        (is_name && !has_port).then(|| {
            if below {
                Self::Below(format!(".{host}"))
            } else {
                Self::Exactly(host.to_owned())
            }
        })
    }
}

impl Field {
    fn is_met(&self, headers: &HeaderMap) -> bool {
        match &self.value {
            None => headers.contains_key(&self.name),
            Some(value) => {
                let mut lines = headers.get_all(&self.name).iter();
                lines.next() == Some(value) && lines.next().is_none()
            }
        }
    }

    /// Tells whether no request can meet both: a field that has to have one line cannot have two values.
    fn excludes(&self, other: &Self) -> bool {
        self.name == other.name && self.value.is_some() && other.value.is_some() && self.value != other.value
    }
}

impl Conditions {
    /// Tells whether a request to this host, without a port, with these fields is covered, whatever its method.
    #[must_use]
    pub fn cover_but_for_the_method(&self, host: &str, headers: &HeaderMap) -> bool {
        (self.hosts.is_empty() || self.hosts.iter().any(|own| own.is(host)))
            && self.fields.iter().all(|field| field.is_met(headers))
    }

    /// Tells whether requests with this method are covered.
    #[must_use]
    pub fn take(&self, method: &Method) -> bool {
        self.methods.is_empty()
            || self.methods.contains(method)
            || *method == Method::HEAD && self.methods.contains(&Method::GET)
    }

    /// Returns how narrow they are: of two routes with the same paths the narrower is asked first.
    #[must_use]
    pub fn rank(&self) -> Rank {
        let host = |host: &Host| match host {
            Host::Below(_) => 1,
            Host::Exactly(_) => 2,
        };
        Rank {
            host: self.hosts.iter().map(host).min().unwrap_or(0),
            method: !self.methods.is_empty(),
            fields: self.fields.len(),
        }
    }

    /// Tells whether some request could meet both, and neither is narrower.
    #[must_use]
    pub fn conflict(&self, other: &Self) -> bool {
        let hosts = self.hosts.is_empty()
            || other.hosts.is_empty()
            || self
                .hosts
                .iter()
                .any(|one| other.hosts.iter().any(|two| one.meets(two)));
        let methods = self.methods.is_empty()
            || self.methods.iter().any(|method| other.take(method))
            || other.methods.iter().any(|method| self.take(method));
        let excluded = self
            .fields
            .iter()
            .any(|one| other.fields.iter().any(|two| one.excludes(two)));
        self.rank() == other.rank() && hosts && methods && !excluded
    }
}

/// Reads the conditions of `match`.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Conditions {
    let hosts = list(
        fields,
        "host",
        "hosts in lower case without a port, or *. and a domain for all below it",
        "[\"shop.example\"]",
        Host::parse,
    );
    let methods = list(
        fields,
        "method",
        "names of methods as they are sent, but not CONNECT or TRACE, which no route takes",
        "[\"POST\"]",
        |text| {
            let method = Method::from_bytes(text.as_bytes()).ok()?;
            (method != Method::CONNECT && method != Method::TRACE).then_some(method)
        },
    );
    Conditions {
        hosts,
        methods,
        fields: read_fields(fields),
    }
}

/// Reads a list of texts of which each has to be something.
fn list<T: PartialEq>(
    fields: &mut Fields<'_, '_>,
    key: &'static str,
    allowed: &str,
    example: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Vec<T> {
    let Some(texts) = fields.texts(key, example) else {
        return Vec::new();
    };
    let mut read = Vec::new();
    if texts.is_empty() || texts.len() > CONDITIONS_MAX {
        let seen = format!("{} of them", texts.len());
        let allowed = format!("1 to {CONDITIONS_MAX} {allowed}");
        fields.problem(
            key,
            &seen,
            &allowed,
            &format!("write `{key} = {example}`, say, or remove it"),
        );
    }
    for text in texts {
        match parse(&text) {
            Some(one) if read.contains(&one) => {
                fields.lint(
                    lints::LISTED_TWICE,
                    key,
                    &format!("\"{text}\" twice"),
                    "each once",
                    "remove one",
                );
            }
            Some(one) => read.push(one),
            None => fields.problem(
                key,
                &format!("\"{}\"", text.escape_debug()),
                allowed,
                &format!("write `{key} = {example}`, say"),
            ),
        }
    }
    read
}

fn read_fields(fields: &mut Fields<'_, '_>) -> Vec<Field> {
    const EXAMPLE: &str = "{ x-beta = \"1\" }";
    let Some(value) = fields.value(keys::HEADER) else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        let seen = super::reader::shown(value);
        fields.lint(
            lints::WRONG_TYPE,
            keys::HEADER,
            &seen,
            "a table of names and values",
            &format!("write `{} = {EXAMPLE}`, say", keys::HEADER),
        );
        return Vec::new();
    };
    if table.is_empty() || table.len() > CONDITIONS_MAX {
        fields.problem(
            keys::HEADER,
            &format!("{} fields", table.len()),
            &format!("1 to {CONDITIONS_MAX} fields"),
            &format!("write `{} = {EXAMPLE}`, say, or remove it", keys::HEADER),
        );
    }
    let mut read = Vec::new();
    for (name, value) in table {
        let text = value.get_ref().as_str();
        let field = HeaderName::from_bytes(name.get_ref().as_bytes())
            .ok()
            .zip(text)
            .and_then(|(name, text)| {
                let value = match text {
                    "*" => None,
                    text => Some(HeaderValue::from_str(text).ok()?),
                };
                Some(Field { name, value })
            });
        match field {
            Some(field) => read.push(field),
            None => {
                let seen = format!(
                    "{} = {}",
                    name.get_ref().escape_debug(),
                    super::reader::shown(value)
                );
                fields.problem(
                    keys::HEADER,
                    &seen,
                    "a name of a field and its value, or \"*\" for any value",
                    &format!("write `{} = {EXAMPLE}`, say", keys::HEADER),
                );
            }
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    fn of(hosts: &[&str], methods: &[&str], fields: &[(&'static str, &'static str)]) -> Conditions {
        Conditions {
            hosts: hosts.iter().map(|text| host(text)).collect(),
            methods: methods
                .iter()
                .map(|text| Method::from_bytes(text.as_bytes()).unwrap())
                .collect(),
            fields: fields
                .iter()
                .map(|(name, value)| Field {
                    name: HeaderName::from_static(name),
                    value: (*value != "*").then(|| HeaderValue::from_static(value)),
                })
                .collect(),
        }
    }

    #[test]
    fn a_domain_stands_for_what_is_below_it_and_not_for_itself() {
        assert!(host("a.example").is("A.Example"));
        assert!(!host("a.example").is("b.a.example"));
        let below = host("*.a.example");
        for (name, is) in [
            ("b.a.example", true),
            ("C.B.A.EXAMPLE", true),
            ("a.example", false),
            (".a.example", false),
            ("ba.example", false),
            ("", false),
        ] {
            assert_eq!(below.is(name), is, "{name}");
        }
        for text in ["", "*.", "*", "A.example", "a.example:80", "*.*.a", "a b", ".a"] {
            assert!(Host::parse(text).is_none(), "{text}");
        }
        assert!(host("[::1]").is("[::1]"));
    }

    #[test]
    fn two_routes_conflict_only_where_a_request_could_meet_both_and_neither_is_narrower() {
        let none = of(&[], &[], &[]);
        assert!(none.conflict(&none));
        for (one, two, conflict) in [
            (of(&["a.b"], &[], &[]), none.clone(), false),
            (of(&["a.b"], &[], &[]), of(&["*.b"], &[], &[]), false),
            (of(&["a.b"], &[], &[]), of(&["c.b", "a.b"], &[], &[]), true),
            (of(&["*.b"], &[], &[]), of(&["*.a.b"], &[], &[]), true),
            (of(&["*.b"], &[], &[]), of(&["*.c"], &[], &[]), false),
            (of(&[], &["GET"], &[]), of(&[], &["POST"], &[]), false),
            (of(&[], &["GET"], &[]), of(&[], &["HEAD"], &[]), true),
            (of(&[], &["GET"], &[]), of(&[], &["POST", "GET"], &[]), true),
            (of(&[], &["get"], &[]), of(&[], &["GET"], &[]), false),
            (of(&[], &[], &[("x", "1")]), of(&[], &[], &[("x", "2")]), false),
            (of(&[], &[], &[("x", "1")]), of(&[], &[], &[("y", "1")]), true),
            (of(&[], &[], &[("x", "*")]), of(&[], &[], &[("x", "2")]), true),
        ] {
            assert_eq!(one.conflict(&two), conflict, "{one:?} {two:?}");
            assert_eq!(two.conflict(&one), conflict, "{two:?} {one:?}");
        }
    }

    #[test]
    fn methods_are_told_apart_by_case_and_get_covers_head() {
        let get = of(&[], &["GET"], &[]);
        let takes = |text: &str| get.take(&Method::from_bytes(text.as_bytes()).unwrap());
        assert_eq!(
            ["GET", "HEAD", "get", "POST"].map(takes),
            [true, true, false, false]
        );
        assert!(of(&[], &[], &[]).take(&Method::POST));
    }

    #[test]
    fn every_field_has_to_be_there_and_a_value_on_its_only_line() {
        let beta = of(&[], &[], &[("x-beta", "1"), ("x-any", "*")]);
        let headers = |lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            headers
        };
        let covers = |lines: &[_]| beta.cover_but_for_the_method("a", &headers(lines));
        assert!(covers(&[("x-beta", "1"), ("x-any", ""), ("x-any", "2")]));
        assert!(!covers(&[("x-beta", "1"), ("x-beta", "1"), ("x-any", "")]));
        assert!(!covers(&[("x-beta", "1"), ("x-beta", "0"), ("x-any", "")]));
        assert!(!covers(&[("x-beta", "1")]));
        assert!(!covers(&[("x-beta", "1, 1"), ("x-any", "")]));
    }
}
