//! Decides what of a request and of a response head the rules look at, and for whom a copy is meant.
//! It exists so that a head is read once, and so that a kept copy carries the few facts that later questions
//! need.
//! It refuses to judge: whether to keep is [`crate::store_rules`], whether to give is [`mod@crate::decide`].

use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName};
use http::{Method, StatusCode};

use crate::directives::{RequestDirectives, ResponseDirectives};
use crate::grammar::trim_ows;
use crate::targeted;

/// For whom a copy is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// For every request with the same key: the rules of a shared cache.
    Shared,
    /// For one verified principal, who is part of the key: the rules of a private cache.
    Private,
}

/// What the rules need to know of a request. Take it from the head as received, before hop-by-hop fields are
/// removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    /// What kind of method it has.
    pub method: MethodKind,
    /// It carries `Authorization`.
    pub authorization: bool,
    /// It carries a cookie that is not declared to be ignored.
    pub cookies: bool,
    /// What its `Cache-Control` says.
    pub directives: RequestDirectives,
}

/// The methods the rules tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// GET: answers may be kept and given.
    Get,
    /// HEAD: may be answered from a kept GET, is never kept itself (rule H25).
    Head,
    /// Everything else: neither kept nor given.
    Other,
}

impl RequestFacts {
    /// Reads the facts of a request. `ignored_cookies` are the cookie names declared to have no influence on
    /// the answer.
    #[must_use]
    pub fn of<S: AsRef<str>>(method: &Method, headers: &HeaderMap, ignored_cookies: &[S]) -> Self {
        let method = if *method == Method::GET {
            MethodKind::Get
        } else if *method == Method::HEAD {
            MethodKind::Head
        } else {
            MethodKind::Other
        };
        Self {
            method,
            authorization: headers.contains_key(AUTHORIZATION),
            cookies: carries_cookies(headers, ignored_cookies),
            directives: RequestDirectives::of(headers),
        }
    }
}

fn carries_cookies<S: AsRef<str>>(headers: &HeaderMap, ignored: &[S]) -> bool {
    headers
        .get_all(COOKIE)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b';'))
        .map(trim_ows)
        .filter(|pair| !pair.is_empty())
        .any(|pair| {
            let name = trim_ows(pair.split(|byte| *byte == b'=').next().unwrap_or_default());
            !ignored.iter().any(|ignored| ignored.as_ref().as_bytes() == name)
        })
}

/// The head of a response with its `Cache-Control` read. Take it as received, before hop-by-hop fields are
/// removed: a `Connection` field that names `Cache-Control` must not lift a prohibition.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status.
    pub status: StatusCode,
    /// All header fields.
    pub headers: &'a HeaderMap,
    /// What `Cache-Control` says, or the targeted field that takes its place.
    pub directives: ResponseDirectives,
    /// `Expires` counts. False where a targeted field takes the place of it and of `Cache-Control` (TC1).
    pub expires_counts: bool,
}

impl<'a> ResponseHead<'a> {
    /// Reads `Cache-Control` once, for all rules that need it.
    #[must_use]
    pub fn of(status: StatusCode, headers: &'a HeaderMap) -> Self {
        Self {
            status,
            headers,
            directives: ResponseDirectives::of(headers),
            expires_counts: true,
        }
    }

    /// Reads the first valid targeted field of the list instead, where the response has one (TC1; RFC 9213
    /// §2.2).
    ///
    /// `targets` names the fields this cache obeys, most specific first, for instance the product's own and
    /// [`targeted::CDN_CACHE_CONTROL`]. Private copies have no targets.
    #[must_use]
    pub fn targeted(status: StatusCode, headers: &'a HeaderMap, targets: &[HeaderName]) -> Self {
        targeted::directives(headers, targets).map_or_else(
            || Self::of(status, headers),
            |directives| Self {
                status,
                headers,
                directives,
                expires_counts: false,
            },
        )
    }
}

/// What the rules need to know of a kept shared copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFacts {
    /// The request that fetched it carried `Authorization`.
    pub authorization: bool,
    /// What its `Cache-Control` said.
    pub directives: ResponseDirectives,
}

/// Tells whether an answer says something about what others are given, and not only about the one who asked.
///
/// What is told to somebody with credentials or cookies is their own, a refusal or a prohibition to keep it included,
/// unless the answer says that it is for all (rules C12, C33): it takes no shared copy away. In a private cache every
/// request is by the one whose copies they are.
#[must_use]
pub fn speaks_for_all(sharing: Sharing, request: &RequestFacts, said: &ResponseDirectives) -> bool {
    match sharing {
        Sharing::Private => true,
        Sharing::Shared => {
            !request.cookies && (!request.authorization || may_be_shared_despite_authorization(said))
        }
    }
}

/// How a copy is about to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reuse {
    /// Within its lifetime.
    Fresh,
    /// After it.
    Stale,
}

/// Tells whether a response may be shared although `Authorization` was sent (RFC 9111 §3.5, rule C12).
pub(crate) const fn may_be_shared_despite_authorization(said: &ResponseDirectives) -> bool {
    said.public || said.s_maxage.is_some() || said.must_revalidate
}
