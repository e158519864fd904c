//! Decides how one attempt on a caching route is carried out: with the copy's validators, and what comes is stored,
//! updates what is kept, or passes by.
//! It exists beside the plain attempt because a 304 is an answer here, and because storing is part of the attempt.
//! It refuses to judge headers: what may be stored and which copies a 304 speaks of, the rule book says.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel::{
    Keep, Mono, Now, Permit,
    http::{Arrived, Head as Judged, HttpCache, NotShelved, Settled},
};
use evenkeel_http::{decision::Decision, degraded::is_degraded, validation::make_refresh};
use http::{
    HeaderMap, Method, StatusCode,
    header::{IF_MODIFIED_SINCE, IF_NONE_MATCH},
    response,
};

use super::{
    buffers::Lease,
    cached::Cached,
    exchange::{Exchange, Handed, Read},
    forward::{self, Sent},
    framing::{self, Asked, End},
    keep::{Verdict, Why},
    route::Validated,
    seat::CameTo,
    stream::Stream,
    trouble::Trouble,
    upload::Upload,
    upstream::Head,
    whole::{How, Reply},
};

/// An answer whose head has arrived.
struct Answer {
    head: response::Parts,
    stream: Stream,
    end: End,
    began: Mono,
}

impl Exchange {
    /// Makes the attempt.
    pub(super) async fn run_cached(
        &self,
        cache: &HttpCache,
        cached: &Cached,
        mut permit: Option<Permit<'static>>,
    ) -> Result<Reply, Trouble> {
        let began = self.route.engine.now().mono;
        let mut decision = cached.first(cache, began);
        if decision == Decision::Fresh {
            // A copy that is good is asked for by a refresh ahead of its end alone.
            decision = Decision::StaleWhileRevalidating;
        }
        let mut conditions = HeaderMap::new();
        let looked = &cached.looked;
        let conditional = cache.ask(looked, decision, &self.request.headers, &mut conditions);
        let refreshes = decision == Decision::StaleWhileRevalidating;
        let mut answer = self.sent(began, (refreshes, &conditions), &mut permit).await?;
        if answer.head.status != StatusCode::NOT_MODIFIED {
            if conditional && !self.is_error(answer.head.status) {
                self.route.note_validated(Validated::Replaced);
            }
            return self.arrived(cache, cached, answer).await;
        }
        let mut permit = answer.stream.take_permit();
        answer.stream.end_now().await;
        // A gateway that cannot ask vouches for no copy; with the whole answer it says what it has.
        if conditional && !is_degraded(&answer.head.headers) {
            // What is kept is updated as it was stored: prepared for this side of the gateway.
            let fields = self.fields(&answer.head);
            let arrived = Arrived {
                headers: &fields,
                ..self.arrived_head(&answer)
            };
            let settled = cache.not_modified(&cached.key, looked, &self.request.headers, &arrived);
            if let Some(settled) = settled {
                self.route.note_validated(Validated::NotModified);
                return Ok(self.validated(settled));
            }
        }
        if conditional {
            // It speaks of no copy that is held: only the whole answer helps (C23).
            let conditions = (refreshes, &HeaderMap::new());
            let answer = self.sent(began, conditions, &mut permit).await?;
            return self.arrived(cache, cached, answer).await;
        }
        // The client's own condition, answered although it was not sent on.
        self.let_through(answer.head, answer.stream, None, Keep::Leave)
    }

    async fn sent(
        &self,
        began: Mono,
        (refreshes, conditions): (bool, &HeaderMap),
        permit: &mut Option<Permit<'static>>,
    ) -> Result<Answer, Trouble> {
        let route = &self.route;
        let upstream = route.upstream();
        let sent = upstream.send(&self.tried, || {
            self.note_connected(permit.as_ref());
            let mut outgoing = forward::outgoing(
                &self.request,
                &self.authority,
                &self.peer,
                &route.via,
                &upstream.rewrite,
                Sent::Whole,
                Upload::Empty,
            );
            let headers = outgoing.headers_mut();
            if refreshes {
                // Nobody waits, and the result is for everyone.
                make_refresh(headers);
            }
            headers.extend(
                conditions
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
            outgoing
        });
        let Head { response, mut link } = sent.await?;
        let (mut head, body) = response.into_parts();
        let asked = |name| conditions.contains_key(&name) || self.request.headers.contains_key(&name);
        let asked = Asked {
            conditional: asked(IF_NONE_MATCH) || asked(IF_MODIFIED_SINCE),
            // Ranges are not sent on. A part that comes all the same is passed on, and never stored.
            range: true,
        };
        let end = framing::check(&mut head, asked).inspect_err(|_| link.came_to(CameTo::Failed))?;
        let home = Arc::clone(upstream);
        let mut stream = Stream::new(body, link, home, permit.take(), route.limits.stream_idle);
        let end = if stream.length().is_some() {
            End::Known
        } else {
            end
        };
        // What follows a 304 may be another sending by the same permit.
        if stream.length() == Some(0) && head.status != StatusCode::NOT_MODIFIED {
            stream.end_now().await;
        }
        Ok(Answer {
            head,
            stream,
            end,
            began,
        })
    }

    fn arrived_head<'a>(&self, answer: &'a Answer) -> Arrived<'a> {
        Arrived {
            status: answer.head.status,
            headers: &answer.head.headers,
            began: answer.began,
            at: self.route.engine.now(),
        }
    }

    /// Deals with an answer that is no 304 to a validation.
    async fn arrived(&self, cache: &HttpCache, cached: &Cached, answer: Answer) -> Result<Reply, Trouble> {
        let arrived = self.arrived_head(&answer);
        let (key, looked, request) = (&cached.key, &cached.looked, &self.request.headers);
        if self.request.method == Method::HEAD {
            if !is_degraded(&answer.head.headers) {
                cache.head_answered(key, looked, request, &arrived);
            }
            if self.repeats() && self.is_worth_repeating(answer.head.status) {
                // Whether it is asked once more is said by its fields, and only a whole answer shows them.
                let Answer { head, stream, .. } = answer;
                return match self.read(stream).await? {
                    Read::Whole(body, lease, _) => self.whole(head, body, lease, Verdict::leave(None)),
                    Read::Flowing(stream, why) => self.let_through(head, stream, Some(why), Keep::Leave),
                };
            }
            return self.let_through(answer.head, answer.stream, None, Keep::Leave);
        }
        let judged = if is_degraded(&answer.head.headers) {
            Err((Why::Degraded, None))
        } else if answer.end == End::Unknown {
            Err((Why::UnknownEnd, None))
        } else {
            match cache.judge(looked, &arrived) {
                Judged::Storable => Ok(()),
                Judged::Not(why) => Err((Why::of(why), Some(why))),
            }
        };
        let at = arrived.at;
        let Answer {
            head,
            stream,
            end: _,
            began,
        } = answer;
        // Nothing could stand in for it, nobody else may have it, and it is not asked for again: it flows.
        let may_repeat = self.repeats() && self.is_worth_repeating(head.status);
        // A failure is for all who wait for it.
        let may_share = self.is_error(head.status) && !self.asks_alone(cache, cached);
        if let Err((why, _)) = judged
            && !self.route.has_ladder
            && !self.route.keep_if.faults
            && !may_repeat
            && !may_share
            && looked.chosen().is_none()
        {
            return self.let_through(head, stream, Some(why), Keep::Leave);
        }
        let (body, lease, trailer) = match self.read(stream).await? {
            Read::Whole(body, lease, trailer) => (body, lease, trailer),
            Read::Flowing(stream, why) => {
                let (why, supersedes) = match judged {
                    Err(judged) => judged,
                    // That there was no room for it says nothing about what is held.
                    Ok(()) => (why, (why == Why::TooLarge).then_some(NotShelved::TooBig)),
                };
                let stream = self.superseding(cache, cached, stream, (&head, began, at), supersedes);
                return self.let_through(head, stream, Some(why), Keep::Leave);
            }
        };
        let arrived = Arrived {
            status: head.status,
            headers: &head.headers,
            began,
            at,
        };
        let worth = self.worth(&head, &body, trailer.as_ref())?;
        let why = match judged {
            Ok(()) => worth.err().map(Why::KeepIf),
            Err((why, supersedes)) => {
                if let Some(supersedes) = supersedes {
                    cache.supersede(key, looked, request, &arrived, supersedes);
                }
                Some(why)
            }
        };
        if let Some(why) = why {
            return self.whole(head, body, lease, Verdict::leave(Some(why)));
        }
        let fields = self.fields(&head);
        match cache.store(key, looked, request, (&arrived, &fields), &body) {
            None => self.whole(head, body, lease, Verdict::leave(None)),
            Some(settled) if self.is_error(head.status) => {
                self.note(settled.stored);
                self.whole(head, body, lease, Verdict::leave(None))
            }
            Some(settled) => Ok(self.stored(settled, fields, body, lease)),
        }
    }

    /// Lets a stream take away what it supersedes, once all of it has come.
    fn superseding(
        &self,
        cache: &HttpCache,
        cached: &Cached,
        stream: Stream,
        (head, began, at): (&response::Parts, Mono, Now),
        supersedes: Option<NotShelved>,
    ) -> Stream {
        let (Some(why), Some(_)) = (supersedes, cached.looked.chosen()) else {
            return stream;
        };
        let (cache, key, looked) = (cache.clone(), cached.key.clone(), cached.looked.clone());
        let (request, status, headers) = (self.request.headers.clone(), head.status, head.headers.clone());
        stream.then(move || {
            let arrived = Arrived {
                status,
                headers: &headers,
                began,
                at,
            };
            cache.supersede(&key, &looked, &request, &arrived, why);
        })
    }

    /// Hands the fields of an answer to the one who asked, as they came.
    fn stored(&self, settled: Settled, fields: HeaderMap, body: Bytes, lease: Lease) -> Reply {
        self.tap_copy(&settled.copy, &body);
        drop((body, lease)); // the copy has it now
        self.note(settled.stored);
        self.handed.lock().headers = Some(fields);
        Reply::Cached(
            settled.copy,
            How::Fetched {
                stored: settled.stored.is_ok(),
            },
        )
    }

    fn validated(&self, settled: Settled) -> Reply {
        self.note(settled.stored);
        *self.handed.lock() = Handed::default();
        Reply::Cached(
            settled.copy,
            How::Validated {
                stored: settled.stored.is_ok(),
            },
        )
    }

    fn note(&self, stored: Result<(), NotShelved>) {
        if let Err(why) = stored {
            self.route.note_not_kept(Why::of(why));
        }
    }
}
