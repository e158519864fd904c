//! Decides how each word that stands against keeping an answer is explained: by its field, and by what would mend it.
//! It exists because an answer often has several, and who mends one at a time deploys several times.
//! It refuses to show values of cookies and credentials: names are enough to mend a contract.

use evenkeel_http::{
    facts::ResponseHead,
    store_rules::{NotKept, may_keep},
};
use http::{
    HeaderMap, HeaderName, Method,
    header::{
        AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, COOKIE, SET_COOKIE, TRANSFER_ENCODING,
        VARY,
    },
};

use super::judged::Judged;
use crate::{config, proxy::Why};

/// One thing that stands against keeping an answer.
#[derive(Clone, Debug)]
pub(super) struct Against {
    pub(super) why: &'static str,
    /// The field, as far as it may be shown.
    pub(super) field: String,
    pub(super) mend: String,
}

impl Judged<'_> {
    /// Everything that stands against keeping it: what the gateway counted, then what would still hold if that were mended.
    pub(super) fn against(&self) -> Vec<Against> {
        let counted = Why::all().find(|why| self.route.not_kept(*why) > 0);
        let by_the_store = [
            (Why::TooBig, evenkeel::NotKept::TooBig),
            (Why::Superseded, evenkeel::NotKept::Superseded),
        ];
        let counts = self.route.guard.counts();
        let counted = counted.or_else(|| {
            let mut stored = by_the_store.into_iter();
            stored
                .find(|(_, why)| counts.not_kept(*why) > 0)
                .map(|(why, _)| why)
        });
        let Some(first) = counted else {
            return Vec::new();
        };
        let mut all = vec![self.explain(first)];
        let mut headers = (self.seen.request.clone(), self.seen.headers.clone());
        let mut last = first;
        // Each round takes the cause of one word away, and there are not many.
        for _ in 0..Why::COUNT {
            let Why::Http(why) = last else { break };
            if !mended(why, &mut headers) {
                break;
            }
            let facts = self.declared.ignored_cookies.request(&Method::GET, &headers.0);
            match may_keep(
                self.route.sharing,
                &facts,
                &ResponseHead::of(self.status, &headers.1),
            ) {
                Err(next) if next != why => {
                    last = Why::Http(next);
                    all.push(self.explain(last));
                }
                Ok(()) | Err(_) => break,
            }
        }
        all
    }

    pub(super) fn explain(&self, why: Why) -> Against {
        let (field, mend) = match why {
            Why::Http(why) => self.explain_http(why),
            Why::KeepIf(_) => (
                format!("keep_if = {}", shown_keep_if(&self.declared.keep_if)),
                "loosen `keep_if`, if such an answer is worth keeping".to_owned(),
            ),
            Why::Degraded => (
                self.field(&HeaderName::from_static("x-data-freshness")),
                "another gateway behind this one stands in: the outage is there".to_owned(),
            ),
            Why::TooLarge => (
                self.field(&CONTENT_LENGTH),
                format!("max_body is {} bytes: raise `max_body` of the route", self.declared.max_body),
            ),
            Why::BuffersFull => (
                self.field(&CONTENT_LENGTH),
                format!("gateway.buffers is {} bytes: raise it", self.contract.gateway.buffers),
            ),
            Why::UnknownEnd => (
                format!("{}; {}", self.field(&CONTENT_LENGTH), self.field(&TRANSFER_ENCODING)),
                "have the origin send Content-Length or chunks: a cut could not be told from the end".to_owned(),
            ),
            Why::NoUse => (
                self.field(&CACHE_CONTROL),
                "have the origin send a lifetime or a validator, or set `heuristic` or `ladder = [ { stale = \"60s\" } ]`".to_owned(),
            ),
            Why::ErrorAnswer => (format!("status {}", self.status), "nothing: a good copy is held".to_owned()),
            Why::TooBig => (
                self.field(&CONTENT_LENGTH),
                format!("gateway.memory is {} bytes in parts: raise it", self.contract.gateway.memory),
            ),
            Why::Superseded => (String::new(), "nothing: something newer is kept".to_owned()),
        };
        Against {
            why: why.as_str(),
            field,
            mend,
        }
    }

    fn explain_http(&self, why: NotKept) -> (String, String) {
        let asked = |name: &HeaderName| shown_field(name, &self.seen.request);
        match why {
            NotKept::Method => ("method".to_owned(), "only answers to GET are kept".to_owned()),
            NotKept::Status => (
                format!("status {}", self.status),
                "only good answers are kept; a redirect needs a stated lifetime".to_owned(),
            ),
            NotKept::Partial => (
                self.field(&CONTENT_RANGE),
                "a part of the whole is not kept: ask without Range".to_owned(),
            ),
            NotKept::NoStore | NotKept::Private => (
                self.field(&CACHE_CONTROL),
                "the origin means it, and nothing sets it aside: change it there, if it was a default"
                    .to_owned(),
            ),
            NotKept::RequestNoStore => (asked(&CACHE_CONTROL), "the client asked for it".to_owned()),
            NotKept::UnreadableCacheControl => (
                format!(
                    "{}; request {}",
                    self.field(&CACHE_CONTROL),
                    asked(&CACHE_CONTROL)
                ),
                "outside the grammar, so the strictest is assumed: correct it where it is sent".to_owned(),
            ),
            NotKept::Authorization => (
                asked(&AUTHORIZATION),
                "the answer is somebody's own, unless the origin says `public` or `s-maxage`".to_owned(),
            ),
            NotKept::Cookie => (
                asked(&COOKIE),
                format!(
                    "if they do not change the answer: ignore_cookies = {:?}",
                    cookies(&self.seen.request)
                ),
            ),
            NotKept::SetCookie => (
                self.field(&SET_COOKIE),
                if self.declared.caching.is_some() {
                    "stop the origin from setting it on answers for all, or `keep_set_cookie = true`: everybody is given it then".to_owned()
                } else {
                    "stop the origin from setting it on answers that are for all".to_owned()
                },
            ),
            NotKept::VaryStar | NotKept::VaryUnusable => (
                self.field(&VARY),
                "have the origin name the few fields that matter".to_owned(),
            ),
        }
    }

    pub(super) fn field(&self, name: &HeaderName) -> String {
        shown_field(name, &self.seen.headers)
    }
}

/// Takes away what one word stands for; `false` if that cannot be taken away.
fn mended(why: NotKept, (request, answer): &mut (HeaderMap, HeaderMap)) -> bool {
    match why {
        NotKept::Cookie => request.remove(COOKIE).is_some(),
        NotKept::Authorization => request.remove(AUTHORIZATION).is_some(),
        NotKept::SetCookie => answer.remove(SET_COOKIE).is_some(),
        NotKept::RequestNoStore => request.remove(CACHE_CONTROL).is_some(),
        NotKept::NoStore | NotKept::Private => answer.remove(CACHE_CONTROL).is_some(),
        NotKept::UnreadableCacheControl => {
            let both = [request.remove(CACHE_CONTROL), answer.remove(CACHE_CONTROL)];
            both.iter().any(Option::is_some)
        }
        NotKept::VaryStar | NotKept::VaryUnusable => answer.remove(VARY).is_some(),
        NotKept::Method | NotKept::Status | NotKept::Partial => false,
    }
}

/// Returns the names of the cookies that a request has.
pub(super) fn cookies(request: &HeaderMap) -> Vec<String> {
    let lines = request.get_all(COOKIE).iter();
    let text: Vec<String> = lines
        .map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned())
        .collect();
    let pairs = text.iter().flat_map(|line| line.split(';'));
    pairs
        .map(|pair| pair.split('=').next().unwrap_or_default().trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Writes a field as far as it may be shown: of cookies and credentials the names alone.
fn shown_field(name: &HeaderName, headers: &HeaderMap) -> String {
    let values: Vec<String> = headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    if values.is_empty() {
        return format!("no {name}");
    }
    let shown = if *name == COOKIE {
        cookies(headers).join(", ")
    } else if *name == SET_COOKIE || *name == AUTHORIZATION {
        let first = |value: &String| value.split(['=', ' ']).next().unwrap_or_default().to_owned();
        values.iter().map(first).collect::<Vec<_>>().join(", ")
    } else {
        values.join(", ")
    };
    format!("{name}: {shown}")
}

pub(super) fn shown_keep_if(keep_if: &config::KeepIf) -> String {
    let quoted = |list: Vec<String>| -> Vec<String> { list.iter().map(|one| format!("\"{one}\"")).collect() };
    let statuses = keep_if.status.iter().map(|status| status.as_str().to_owned());
    let lists = [
        ("status", statuses.collect()),
        ("content_type", quoted(keep_if.content_type.clone())),
        (
            "json",
            quoted(keep_if.json.iter().map(ToString::to_string).collect()),
        ),
        (
            "json_not_empty",
            quoted(keep_if.json_not_empty.iter().map(ToString::to_string).collect()),
        ),
    ];
    let flags = [
        ("not_empty", keep_if.not_empty),
        ("grpc", keep_if.grpc),
        ("graphql", keep_if.graphql),
    ];
    let sizes = [("min_size", keep_if.min_size), ("max_size", keep_if.max_size)];
    let mut parts: Vec<String> = lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(key, list)| format!("{key} = [{}]", list.join(", ")))
        .collect();
    let sizes = sizes.into_iter().filter_map(|(key, size)| Some((key, size?)));
    parts.extend(sizes.map(|(key, size)| format!("{key} = \"{size}B\"")));
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
    parts.extend(flags.map(|(key, _)| format!("{key} = true")));
    if keep_if.faults {
        parts.push("else = \"fault\"".to_owned());
    }
    format!("{{ {} }}", parts.join(", "))
}
