//! The HTTP rules of evenkeel as pure functions over the types of the `http` crate.
//!
//! Heads, dates and durations go in; decisions and header values come out. There is no clock, no I/O, no
//! async and no state here, and no
//! other evenkeel package: the caller says what time it is and what the engine decided. Rule ids in the docs
//! (`C12`, `H10`, ...) and in the test
//! names are those of the project's list of standards.
//!
//! # The map
//!
//! | question | module | rules |
//! |---|---|---|
//! | What do the `Cache-Control` lines say? | [`directives`] | C05-C07, G31 |
//! | Which instant is this date, how long is this wait? | [`dates`], [`delays`] | H04, H05, C07 |
//! | What of a head do the rules look at? | [`facts`] | - |
//! | May this answer be kept? | [`store_rules`] | C01-C03, C12, C26, C33 |
//! | May the kept one be given, also stale? | [`reuse`] | C12, C15-C17, X1, G18 |
//! | How old is it, how long does it live, how long may it be given? | [`age`] | C06-C11, S04-S06 |
//! | Which of several copies fits? | [`vary`] | C13, C14, G28, G29 |
//! | What does a write retire? | [`invalidate`] | C27, C28 |
//! | Which fields end here, and who are we? | [`hop`] | H10-H12, C04 |
//! | What does this status mean? | [`status`] | X4, C01, H17 |
//! | What does the answer say about itself? | [`cache_status`], [`proxy_status`], [`freshness`], [`degraded`] | CS1-CS6, PS1-PS5 |
//! | What does a refusal say? | [`problem`] | PD1-PD3, H01-H04 |
//!
//! # One exchange
//!
//! ```
//! use evenkeel_http::age::{corrected_initial_age, current_age, freshness_lifetime, stale_limit};
//! use evenkeel_http::dates::HttpDate;
//! use evenkeel_http::facts::{RequestFacts, ResponseHead, Reuse, Sharing, StoredFacts};
//! use evenkeel_http::reuse::{given_from_shared, stale_forbidden};
//! use evenkeel_http::store_rules::may_keep;
//! use http::{HeaderMap, HeaderValue, Method, StatusCode, header::CACHE_CONTROL};
//! use std::time::Duration;
//!
//! // A good answer arrives: facts first, then hop-by-hop fields are stripped, then it is kept.
//! let request = RequestFacts::of(&Method::GET, &HeaderMap::new(), &["theme"]);
//! let mut headers = HeaderMap::new();
//! headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60, stale-if-error=300"));
//! let response = ResponseHead::of(StatusCode::OK, &headers);
//! assert_eq!(may_keep(Sharing::Shared, &request, &response), Ok(()));
//!
//! let received = HttpDate::from_unix_seconds(1_764_440_643);
//! let on_receipt = corrected_initial_age(&headers, received, Duration::from_millis(80));
//! let lifetime = freshness_lifetime(&response.directives, &headers, Sharing::Shared, received);
//! let limit = stale_limit(lifetime, response.directives.stale_if_error);
//! assert_eq!(limit, Some(Duration::from_secs(360)));
//!
//! // Later the dependency fails: may this request have it, may it be stale, is it young enough?
//! let stored = StoredFacts { authorization: request.authorization, directives: response.directives };
//! assert_eq!(given_from_shared(&request, &stored, Reuse::Stale), Ok(()));
//! assert_eq!(stale_forbidden(Sharing::Shared, &stored.directives), None);
//! let age = current_age(on_receipt, Duration::from_secs(200));
//! assert!(limit.is_none_or(|limit| age <= limit));
//! ```
//!
//! Left to the caller: keys, stores, bodies and their completeness, message framing, and which answers are
//! asked for when. Not yet here, because
//! nothing gives fresh answers from a store yet: heuristic lifetimes (C09), the request's own limits (C19,
//! C20) and validation (C21-C25).

pub mod accept;
pub mod age;
pub mod answer;
pub mod cache_status;
pub mod dates;
pub mod decide;
pub mod decision;
pub mod degraded;
pub mod delays;
pub mod directives;
pub mod etag;
pub mod facts;
pub mod freshen;
pub mod freshness;
mod grammar;
pub mod hop;
pub mod invalidate;
pub mod lifetime;
pub mod preconditions;
pub mod problem;
mod problem_kind;
pub mod proxy_status;
pub mod ranges;
pub mod reuse;
mod sf;
pub mod status;
pub mod store_rules;
pub mod stored;
pub mod targeted;
#[cfg(test)]
mod testing;
pub mod validation;
pub mod vary;
