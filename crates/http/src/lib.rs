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
//! | **Reading** | | |
//! | What do the `Cache-Control` lines say? And a targeted field? | [`directives`], [`targeted`] | C05-C07, G31, TC1-TC4 |
//! | Which instant is this date, how long is this wait, are these tags equal? | [`dates`], [`delays`], [`etag`] | H04, H05, H19, C07 |
//! | What of a head do the rules look at? | [`facts`] | - |
//! | What does this status mean? | [`status`] | X4, C01, H17 |
//! | **Storing** | | |
//! | May this answer be kept for failures, or stored for reuse? | [`store_rules`] | C01-C03, C12, C26, C33 |
//! | How old is it, and for how long is it fresh? | [`age`], [`lifetime`] | C06-C11, S06 |
//! | What does a look-up need to know of it? | [`stored`] | - |
//! | Which of several copies fits, in which spelling? | [`vary`], [`accept`] | C13, C14, G28, G29 |
//! | Does an answer that may not be kept take the older copy away? | [`supersede`] | C12, C33 |
//! | What does a write retire? | [`invalidate`] | C27, C28 |
//! | **Deciding** | | |
//! | What becomes of this request? | [`decide`](mod@decide), [`decision`] | C15-C20, C30, S01-S07, X1-X4 |
//! | Who may have a copy, and what forbids giving it stale? | [`reuse`] | C12, C16, X1, G18 |
//! | **Validating** | | |
//! | What is asked of the origin? | [`validation`] | C21, S02 |
//! | Which copies does a 304 or a HEAD speak of, and what changes? | [`freshen`] | C22-C25, G21 |
//! | **Answering** | | |
//! | Does the client have it already, and which bytes are wanted? | [`preconditions`], [`ranges`] | H18, H19 |
//! | Which fields does the answer carry? | [`answer`] | C11, C33, H16, H23 |
//! | Which trace does a request belong to? | [`trace`] | TR1, TR2 |
//! | Which fields end here, and who are we? | [`hop`] | H10-H12, C04 |
//! | What does the answer say about itself? | [`cache_status`], [`proxy_status`], [`freshness`], [`degraded`] | CS1-CS6, PS1-PS5 |
//! | What does a refusal say? | [`problem`] | PD1-PD3, H01-H04 |
//!
//! # One exchange
//!
//! ```
//! use evenkeel_http::age::{corrected_initial_age, current_age};
//! use evenkeel_http::answer::{add_date, whole};
//! use evenkeel_http::dates::HttpDate;
//! use evenkeel_http::decide::{Found, Origin, Terms, decide};
//! use evenkeel_http::decision::{Decision, Why};
//! use evenkeel_http::facts::{RequestFacts, ResponseHead, Sharing};
//! use evenkeel_http::hop::strip_hop_by_hop;
//! use evenkeel_http::lifetime::Heuristic;
//! use evenkeel_http::store_rules::may_store;
//! use evenkeel_http::stored::StoredCopy;
//! use evenkeel_http::targeted::CDN_CACHE_CONTROL;
//! use evenkeel_http::vary::Variant;
//! use http::{HeaderMap, HeaderValue, Method, StatusCode, header::{AGE, CACHE_CONTROL}};
//! use std::time::Duration;
//!
//! // Nothing is kept, so the request goes forward.
//! let fields = HeaderMap::new();
//! let request = RequestFacts::of(&Method::GET, &fields, &["theme"]);
//! let terms = Terms::plain(Sharing::Shared);
//! let first = decide(&request, Found::Nothing, Origin::NotAsked, &terms);
//! assert_eq!(first, Decision::Fetch(Why::UriMiss));
//!
//! // The answer arrives: facts first, then what ends at this hop is stripped, then it is stored.
//! let mut headers = HeaderMap::new();
//! headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60, stale-if-error=300"));
//! let received = HttpDate::from_unix_seconds(1_764_440_643);
//! let response = ResponseHead::targeted(StatusCode::OK, &headers, &[CDN_CACHE_CONTROL]);
//! assert_eq!(may_store(Sharing::Shared, &request, &response), Ok(()));
//! let copy = StoredCopy::of(Sharing::Shared, &request, &response, received, Heuristic::OFF);
//! let variant = Variant::of(&headers, &fields).unwrap();
//! let on_receipt = corrected_initial_age(&headers, received, Duration::from_millis(80));
//! add_date(&mut headers, received);
//! strip_hop_by_hop(&mut headers);
//!
//! // Later somebody asks again: the copy fits, and is fresh.
//! assert!(variant.matches(&fields));
//! let found = |residence| Found::Copy {
//!     copy: &copy,
//!     age: Some(current_age(on_receipt, Duration::from_secs(residence))),
//! };
//! assert_eq!(decide(&request, found(30), Origin::NotAsked, &terms), Decision::Fresh);
//! assert_eq!(whole(&headers, current_age(on_receipt, Duration::from_secs(30)))[AGE], "30");
//!
//! // Later still it is stale, and the dependency fails.
//! assert_eq!(decide(&request, found(200), Origin::NotAsked, &terms), Decision::Fetch(Why::Stale));
//! assert_eq!(decide(&request, found(200), Origin::NoAnswer, &terms), Decision::StaleOnError);
//! ```
//!
//! # A validation
//!
//! ```
//! use evenkeel_http::age::corrected_initial_age;
//! use evenkeel_http::answer::{not_modified, whole};
//! use evenkeel_http::dates::HttpDate;
//! use evenkeel_http::freshen::{update, updated_by};
//! use evenkeel_http::preconditions::{Condition, evaluate};
//! use evenkeel_http::validation::make_conditional;
//! use http::{HeaderMap, HeaderValue, StatusCode, header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH}};
//! use std::time::Duration;
//!
//! let mut stored = HeaderMap::new();
//! stored.insert(ETAG, HeaderValue::from_static("\"v1\""));
//! stored.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
//! let received = HttpDate::from_unix_seconds(1_764_440_643);
//!
//! // A client that has an older version asks; the origin is asked about ours.
//! let mut client = HeaderMap::new();
//! client.insert(IF_NONE_MATCH, HeaderValue::from_static("\"v0\""));
//! let mut forwarded = client.clone();
//! assert!(make_conditional(&mut forwarded, &stored, [], received));
//! assert_eq!(forwarded[IF_NONE_MATCH], "\"v1\"");
//!
//! // It says that ours is still good: the copy is updated and counts its age anew.
//! let validated = HttpDate::from_unix_seconds(1_764_440_743);
//! let reply = HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"v1\""))]);
//! assert_eq!(updated_by(&reply, [(&stored, received)]), [0]); // empty: ask again without conditions
//! update(&mut stored, &reply, validated);
//! let age = corrected_initial_age(&reply, validated, Duration::from_millis(40));
//!
//! // The client's own condition is judged on the updated copy.
//! let answer = match evaluate(&client, StatusCode::OK, &stored, validated) {
//!     Condition::NotModified => not_modified(&stored, age),
//!     Condition::Proceed => whole(&stored, age),
//! };
//! assert_eq!(answer[ETAG], "\"v1\"");
//! ```
//!
//! A route that always asks uses less: [`store_rules::may_keep`], [`reuse::given_from_shared`],
//! [`reuse::stale_forbidden`] and [`age::stale_limit`].
//!
//! Left to the caller: keys, stores, bodies and their completeness, message framing, single flights, and which
//! prohibitions a route sets aside. Where these rules differ from an RFC, `docs/reference/caching.md` says so and
//! why; `tests/vectors` shows them section by section.

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
pub mod supersede;
pub mod targeted;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod validation;
pub mod vary;
