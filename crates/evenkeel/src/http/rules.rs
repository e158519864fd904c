//! Decides what a route says about its use of HTTP caching: for whom, how far stale, which cookies, which guesses.
//! It exists so that the many settings are one value, checked once and read by every step of an exchange.
//! It refuses to permit anything by itself: without a setting the RFCs' own rules for a shared cache hold.

use std::time::Duration;

use evenkeel_http::{
    decide::{RequestSay, Terms},
    facts::{RequestFacts, ResponseHead, Sharing},
    lifetime::Heuristic,
    reuse::Prohibition,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};

/// How HTTP caching is used: the rules of RFC 9111, and what a route adds to them or sets aside.
#[derive(Clone, Debug)]
pub struct CacheRules {
    /// For whom copies are kept. Private copies need the principal in the scope of their key.
    pub sharing: Sharing,
    /// Whether lifetimes are guessed where none is stated, and up to which.
    pub heuristic: Heuristic,
    /// The targeted fields obeyed in place of `Cache-Control`, the first one first (RFC 9213).
    pub targets: Vec<HeaderName>,
    /// Cookies that have no influence on answers.
    pub ignored_cookies: IgnoredCookies,
    /// Request fields by which the origin learns who asks, beside `Authorization` and cookies: a request that has one is as
    /// one with `Authorization`.
    pub personal: Vec<HeaderName>,
    /// Answers with `Set-Cookie` are kept, and given with it. Off, they are not kept at all.
    pub keep_set_cookie: bool,
    /// Request fields that are written anew on the way to the origin, and differ from caller to caller. No copy can be
    /// told apart by them, so an answer that names one in `Vary` is not kept.
    pub replaced: Vec<HeaderName>,
    /// How far requests steer.
    pub requests: RequestSay,
    /// The greatest age given when asking fails, where the response states none; a limit where it does.
    pub stale_age: Option<Duration>,
    /// The greatest age of anything given stale.
    pub age_cap: Option<Duration>,
    /// The staleness up to which a copy is given while it is refreshed, where the response states none; a limit where
    /// it does.
    pub stale_while_revalidate: Option<Duration>,
    /// Prohibitions that are set aside when asking fails.
    pub set_aside: Vec<Prohibition>,
}

/// Which cookies of a request count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredCookies {
    /// All but these.
    Named(Vec<String>),
    /// None: cookies have no influence on any answer.
    All,
}

impl IgnoredCookies {
    /// Reads what the rules need to know of a request.
    #[must_use]
    pub fn request(&self, method: &Method, headers: &HeaderMap) -> RequestFacts {
        match self {
            Self::Named(names) => RequestFacts::of(method, headers, names),
            Self::All => RequestFacts {
                cookies: false,
                ..RequestFacts::of::<&str>(method, headers, &[])
            },
        }
    }
}

impl CacheRules {
    /// The rules of RFC 9111 alone, for copies of this kind.
    #[must_use]
    pub const fn plain(sharing: Sharing) -> Self {
        Self {
            sharing,
            heuristic: Heuristic::OFF,
            targets: Vec::new(),
            ignored_cookies: IgnoredCookies::Named(Vec::new()),
            personal: Vec::new(),
            keep_set_cookie: false,
            replaced: Vec::new(),
            requests: RequestSay::BeforeAsking,
            stale_age: None,
            age_cap: None,
            stale_while_revalidate: None,
            set_aside: Vec::new(),
        }
    }

    /// Reads what the rules need to know of a request.
    #[must_use]
    pub fn request(&self, method: &Method, headers: &HeaderMap) -> RequestFacts {
        let mut facts = self.ignored_cookies.request(method, headers);
        facts.authorization |= self.personal.iter().any(|name| headers.contains_key(name));
        facts
    }

    pub(super) fn head<'h>(&self, status: StatusCode, headers: &'h HeaderMap) -> ResponseHead<'h> {
        ResponseHead::targeted(status, headers, &self.targets)
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        Terms {
            sharing: self.sharing,
            requests: self.requests,
            stale_age: self.stale_age,
            age_cap: self.age_cap,
            stale_while_revalidate: self.stale_while_revalidate,
            set_aside: &self.set_aside,
        }
    }
}
