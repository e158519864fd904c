//! Decides the steps of one HTTP exchange with a cache: look up, decide, ask, then store, update or leave.
//! It exists so that hit, validation, fetch and failure are walked in one order, with the rule book asked at each turn.
//! It refuses to send, to wait and to read a clock; its caller does, and says what came and when.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_core::Mono;
use evenkeel_http::{
    decide::{Found, Origin, decide},
    decision::Decision,
    facts::{MethodKind, RequestFacts, ResponseHead, speaks_for_all},
    freshen::{HeadEffect, head_effect, update, updated_by},
    store_rules::{NotKept, may_store, replaces_a_good_copy},
    stored::StoredCopy,
    supersede::lies_in_the_request,
    validation::{make_conditional, make_unconditional},
    vary::{Nominated, Variant},
};
use http::{
    HeaderMap, Method, StatusCode,
    header::{ETAG, LAST_MODIFIED, SET_COOKIE},
};

use super::{
    key::UriKey,
    place::Place,
    rules::CacheRules,
    settled::{Head, NotShelved, Settled},
    shelf::{Put, Retire, Shelf},
    shelved::{Arrived, Shelved},
};

/// A shelf and the rules by which one route uses it.
#[derive(Clone, Debug)]
pub struct HttpCache {
    shelf: Shelf,
    rules: Arc<CacheRules>,
}

/// What was found for one request.
#[derive(Clone, Debug)]
pub struct Looked {
    request: RequestFacts,
    place: Option<Arc<Place>>,
    chosen: Option<Arc<Shelved>>,
}

impl Looked {
    /// Returns what the rules know of the request.
    #[must_use]
    pub const fn request(&self) -> &RequestFacts {
        &self.request
    }

    /// Returns the copy that fits the request, if there is one.
    #[must_use]
    pub const fn chosen(&self) -> Option<&Arc<Shelved>> {
        self.chosen.as_ref()
    }

    /// Takes what was found for void if `is_void` says so of the time at which the attempt began that loaded it. The store
    /// still has it; whoever stores a later load replaces it.
    #[must_use]
    pub fn unless(self, is_void: impl FnOnce(Mono) -> bool) -> Self {
        match &self.chosen {
            Some(copy) if is_void(copy.began) => Self {
                place: None,
                chosen: None,
                ..self
            },
            Some(_) | None => self,
        }
    }

    /// Writes what tells this request from others for the same URI, as far as answers have said it in `Vary`: those
    /// that differ here cannot share an answer.
    fn write_variant(&self, request: &HeaderMap, key: &mut Vec<u8>) {
        let latest = self
            .place
            .iter()
            .flat_map(|place| place.copies())
            .filter_map(|copy| Some((copy.received, copy.variant()?)))
            .max_by_key(|(received, _)| *received);
        if let Some((_, variant)) = latest {
            key.extend_from_slice(&variant.nominated().key_of(request));
        }
    }

    /// Tells the rule book what was found; `facts` are those of the copy that was chosen.
    fn found<'f>(&self, facts: Option<&'f StoredCopy>, now: Mono) -> Found<'f> {
        match (&self.chosen, facts, &self.place) {
            (Some(copy), Some(facts), _) => Found::Copy {
                copy: facts,
                age: copy.age(now),
            },
            (_, _, Some(_)) => Found::OtherVariants,
            (_, _, None) => Found::Nothing,
        }
    }
}

impl HttpCache {
    /// Makes a cache that keeps its answers on this shelf.
    #[must_use]
    pub fn new(shelf: &Shelf, rules: CacheRules) -> Self {
        Self {
            shelf: shelf.clone(),
            rules: Arc::new(rules),
        }
    }

    /// Returns the shelf.
    #[must_use]
    pub const fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &CacheRules {
        &self.rules
    }

    /// Looks a request up. Its fields are taken as received.
    #[must_use]
    pub fn look(&self, key: &UriKey, method: &Method, headers: &HeaderMap) -> Looked {
        self.look_again(key, self.rules.request(method, headers), headers)
    }

    /// Looks up once more for the same request: what is kept may have changed.
    #[must_use]
    pub fn look_again(&self, key: &UriKey, request: RequestFacts, headers: &HeaderMap) -> Looked {
        // What the method alone forbids needs no look.
        let place = if request.method == MethodKind::Other {
            None
        } else {
            self.shelf.get(key)
        };
        let chosen = place.as_ref().and_then(|place| place.select(headers)).cloned();
        Looked {
            request,
            place,
            chosen,
        }
    }

    /// Writes the key under which requests share an attempt: the URI, what `Vary` is known to name, and when the URI was
    /// retired last. Who comes after a write must not join an attempt that began before it.
    #[must_use]
    pub fn together(&self, key: &UriKey, looked: &Looked, request: &HeaderMap) -> Vec<u8> {
        let mut together = self.shelf.retired_at(key).as_nanos().to_be_bytes().to_vec();
        together.extend_from_slice(key.as_bytes());
        looked.write_variant(request, &mut together);
        together
    }

    /// Decides what becomes of a request: before asking, and again after asking has failed.
    #[must_use]
    pub fn decide(&self, looked: &Looked, now: Mono, origin: Origin) -> Decision {
        let facts = looked.chosen.as_ref().map(|copy| copy.facts());
        let found = looked.found(facts.as_ref(), now);
        decide(&looked.request, found, origin, &self.rules.terms())
    }

    /// Tells whether a copy that another request has just fetched may be given to this one (rule C30).
    #[must_use]
    pub fn may_share(&self, request: &RequestFacts, headers: &HeaderMap, copy: &Shelved, now: Mono) -> bool {
        let facts = copy.facts();
        let found = if copy.fits(headers) {
            Found::Copy {
                copy: &facts,
                age: copy.age(now),
            }
        } else {
            Found::OtherVariants
        };
        decide(request, found, Origin::NotAsked, &self.rules.terms()) == Decision::Fresh
    }

    /// Makes the request to the origin from the client's fields: with the validators of what is held, if the decision
    /// is to validate, else without conditions. Tells whether it is conditional.
    pub fn ask(
        &self,
        looked: &Looked,
        decision: Decision,
        request: &HeaderMap,
        sent: &mut HeaderMap,
    ) -> bool {
        let (Decision::Validate(_) | Decision::StaleWhileRevalidating, Some(chosen), Some(place)) =
            (decision, &looked.chosen, &looked.place)
        else {
            make_unconditional(sent);
            return false;
        };
        let selected = chosen.headers(0);
        // A 304 may name any copy that fits the request; the others can be told apart by their tags.
        let others: Vec<HeaderMap> = place
            .copies()
            .iter()
            .filter(|copy| !Arc::ptr_eq(copy, chosen) && copy.fits(request))
            .map(|copy| copy.headers(0))
            .collect();
        make_conditional(sent, &selected, &others, chosen.received)
    }

    /// Judges the head of an answer that is neither a 304 nor an answer to HEAD.
    #[must_use]
    pub fn judge(&self, looked: &Looked, arrived: &Arrived<'_>) -> Head {
        match self.storable(looked, arrived) {
            Ok(()) => Head::Storable,
            Err(why) => Head::Not(why),
        }
    }

    fn storable(&self, looked: &Looked, arrived: &Arrived<'_>) -> Result<(), NotShelved> {
        let rules = &*self.rules;
        let without_cookies;
        let headers = if rules.keep_set_cookie && arrived.headers.contains_key(SET_COOKIE) {
            let mut headers = arrived.headers.clone();
            headers.remove(SET_COOKIE);
            without_cookies = headers;
            &without_cookies
        } else {
            arrived.headers
        };
        let head = rules.head(arrived.status, headers);
        may_store(rules.sharing, &looked.request, &head).map_err(NotShelved::Http)?;
        if Nominated::of(headers).is_ok_and(|names| names.names_any(&rules.replaced)) {
            return Err(NotShelved::Http(NotKept::VaryUnusable));
        }
        let holds_a_good_one = || looked.chosen.as_ref().is_some_and(|copy| copy.facts().is_good());
        if !replaces_a_good_copy(arrived.status) && holds_a_good_one() {
            return Err(NotShelved::ErrorAnswer);
        }
        self.useful(looked, &head, arrived)
    }

    /// Refuses what no later request could be given: it would only take the place of something else.
    fn useful(
        &self,
        looked: &Looked,
        head: &ResponseHead<'_>,
        arrived: &Arrived<'_>,
    ) -> Result<(), NotShelved> {
        let rules = &*self.rules;
        let facts = StoredCopy::of(
            rules.sharing,
            &looked.request,
            head,
            arrived.received(),
            rules.heuristic,
        );
        let on_failure =
            facts.is_good() && (rules.stale_age.is_some() || head.directives.stale_if_error.is_some());
        if facts.has_lifetime() || facts.has_validator || on_failure {
            Ok(())
        } else {
            Err(NotShelved::NoUse)
        }
    }

    /// Stores a complete answer that was judged storable, and supersedes what answered the same request until now.
    /// `fields` are those that it is passed on with: without what ends at this hop, with what was added here.
    #[must_use]
    pub fn store(
        &self,
        key: &UriKey,
        looked: &Looked,
        request: &HeaderMap,
        (arrived, fields): (&Arrived<'_>, &HeaderMap),
        body: &Bytes,
    ) -> Option<Settled> {
        // What has no variant was not judged storable.
        let variant = Variant::of(arrived.headers, request).ok()?;
        let copy = Shelved::of(&self.rules, &looked.request, (arrived, fields), variant, body);
        Some(self.put(key, copy, request))
    }

    fn put(&self, key: &UriKey, copy: Shelved, request: &HeaderMap) -> Settled {
        let copy = Arc::new(copy);
        let stored = match self.shelf.put(key, &copy, request) {
            Put::Kept => Ok(()),
            Put::Superseded => Err(NotShelved::Superseded),
            Put::ErrorAnswer => Err(NotShelved::ErrorAnswer),
            Put::TooBig => Err(NotShelved::TooBig),
        };
        Settled { copy, stored }
    }

    /// Takes away what an answer supersedes that may not be stored itself, unless the reason lies in who asked or how:
    /// that says nothing about what others were given.
    pub fn supersede(
        &self,
        key: &UriKey,
        looked: &Looked,
        request: &HeaderMap,
        arrived: &Arrived<'_>,
        why: NotShelved,
    ) {
        let said = self.rules.head(arrived.status, arrived.headers).directives;
        if about_who_asked(why, &looked.request)
            || !speaks_for_all(self.rules.sharing, &looked.request, &said)
        {
            return;
        }
        if speaks_of_the_data(arrived.status) {
            self.shelf.supersede(key, request, arrived.began);
        } else if refuses(arrived.status)
            && let Some(copy) = &looked.chosen
        {
            self.shelf.replace(key, copy, Some(&Arc::new(copy.expired())));
        }
    }

    /// Updates the copies that a 304 to a validation speaks of, and returns the one to answer with; `None` if it speaks
    /// of none, and the request is to be sent again without conditions (C22, C23).
    #[must_use]
    pub fn not_modified(
        &self,
        key: &UriKey,
        looked: &Looked,
        request: &HeaderMap,
        arrived: &Arrived<'_>,
    ) -> Option<Settled> {
        let place = looked.place.as_ref()?;
        let copies: Vec<(&Arc<Shelved>, HeaderMap)> = place
            .copies()
            .iter()
            .filter(|copy| copy.fits(request))
            .map(|copy| (copy, copy.headers(0)))
            .collect();
        let mut updated = updated_by(
            arrived.headers,
            copies.iter().map(|(copy, headers)| (headers, copy.received)),
        );
        // One without any validator can only speak of the copy whose validators were sent, where there is but one.
        let is_bare = ![ETAG, LAST_MODIFIED]
            .iter()
            .any(|name| arrived.headers.contains_key(name));
        if is_bare && copies.len() == 1 {
            updated = vec![0];
        }
        let mut answer: Option<Settled> = None;
        for at in updated {
            let Some((copy, headers)) = copies.get(at) else {
                continue;
            };
            let settled = self.freshen(key, (looked, request), arrived, copy, headers.clone());
            let is_chosen = looked
                .chosen
                .as_ref()
                .is_some_and(|chosen| Arc::ptr_eq(chosen, copy));
            if is_chosen || answer.is_none() {
                answer = settled.or(answer);
            }
        }
        answer
    }

    /// Makes the updated form of one copy and puts it in its place, if that may still be stored.
    fn freshen(
        &self,
        key: &UriKey,
        (looked, request): (&Looked, &HeaderMap),
        arrived: &Arrived<'_>,
        copy: &Arc<Shelved>,
        mut headers: HeaderMap,
    ) -> Option<Settled> {
        let cookies = self
            .rules
            .keep_set_cookie
            .then(|| arrived.headers.get_all(SET_COOKIE));
        update(&mut headers, arrived.headers, arrived.received());
        if let Some(mut cookies) = cookies.map(|cookies| cookies.iter().peekable())
            && cookies.peek().is_some()
        {
            headers.remove(SET_COOKIE);
            for cookie in cookies {
                headers.append(SET_COOKIE, cookie.clone());
            }
        }
        let as_stored = Arrived {
            status: copy.status(),
            headers: &headers,
            ..*arrived
        };
        let get = RequestFacts {
            method: MethodKind::Get,
            ..looked.request
        };
        let looked = Looked {
            request: get,
            ..looked.clone()
        };
        let storable = self.storable(&looked, &as_stored);
        // Where the update makes it unselectable it is not stored either.
        let variant = Variant::of(&headers, request)
            .or_else(|_| Variant::of(&HeaderMap::new(), request))
            .ok()?;
        // The age counts from the 304's own fields, not from what was stored.
        let updated = copy.updated(&self.rules, &looked.request, arrived, (headers, variant));
        let updated = Arc::new(updated);
        let stored = match storable {
            Ok(()) if self.shelf.replace(key, copy, Some(&updated)) => Ok(()),
            Ok(()) => Err(NotShelved::Superseded),
            Err(why) if about_who_asked(why, &looked.request) => Err(why),
            Err(why) => {
                self.shelf.replace(key, copy, None);
                Err(why)
            }
        };
        Some(Settled {
            copy: updated,
            stored,
        })
    }

    /// Lets the answer to a HEAD speak of the stored GET (C25): it freshens it, outdates it, or says nothing.
    pub fn head_answered(&self, key: &UriKey, looked: &Looked, request: &HeaderMap, arrived: &Arrived<'_>) {
        let Some(copy) = &looked.chosen else { return };
        let said = self.rules.head(arrived.status, arrived.headers).directives;
        if !speaks_for_all(self.rules.sharing, &looked.request, &said) {
            return;
        }
        let stored = copy.headers(0);
        let length = copy.body().len() as u64;
        match head_effect(arrived.status, arrived.headers, copy.status(), &stored, length) {
            HeadEffect::Freshens => drop(self.freshen(key, (looked, request), arrived, copy, stored)),
            HeadEffect::Outdates => {
                self.shelf.replace(key, copy, Some(&Arc::new(copy.expired())));
            }
            HeadEffect::Nothing => {}
        }
    }

    /// Retires every copy of a URI, and what an attempt that began before `at` may yet bring.
    pub fn retire(&self, key: &UriKey, how: Retire, at: Mono) {
        self.shelf.retire(key, how, at);
    }
}

/// Tells whether an answer is not stored because of who asked, how or when, which says nothing about what others were
/// given.
const fn about_who_asked(why: NotShelved, request: &RequestFacts) -> bool {
    match why {
        NotShelved::Http(why) => lies_in_the_request(why, request),
        NotShelved::NoUse | NotShelved::TooBig => false,
        NotShelved::ErrorAnswer | NotShelved::Superseded => true,
    }
}

/// Tells whether an answer with this status says that what was kept is no more: new data, or that there is none. Errors
/// and refusals say nothing about what others were given.
fn speaks_of_the_data(status: StatusCode) -> bool {
    let is_new = (status.is_success() || status.is_redirection()) && status != StatusCode::NOT_MODIFIED;
    is_new || matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE)
}

/// Tells whether an answer with this status refuses what was asked for, whoever asks and how: a copy is then no longer
/// given before the question is asked again, and still stands in when nobody answers.
const fn refuses(status: StatusCode) -> bool {
    let code = status.as_u16();
    // Of the others some are about the one request, and 429 asks for fewer questions.
    let about_the_request = matches!(
        code,
        400 | 405 | 408 | 411..=418 | 421 | 425 | 426 | 428 | 429 | 431
    );
    code >= 400 && replaces_a_good_copy(status) && !about_the_request
}
