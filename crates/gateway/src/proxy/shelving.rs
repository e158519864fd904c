//! Decides how one attempt on a caching route is carried out: with the copy's validators, and what comes is stored,
//! updates what is kept, or passes by.
//! It exists beside the plain attempt because a 304 is an answer here, and because storing is part of the attempt.
//! It refuses to judge headers: what may be stored and which copies a 304 speaks of, the rule book says.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use evenkeel::{
    Keep, Mono, Permit,
    http::{Arrived, Head as Judged, HttpCache, NotShelved, Settled},
};
use evenkeel_http::{decision::Decision, status::in_error_set, validation::make_refresh};
use http::{
    HeaderMap, Method, StatusCode,
    header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE},
    response,
};

use super::{
    buffers::Lease,
    cached::Cached,
    exchange::{Exchange, Handed, Read},
    forward::{self, Sent},
    framing::{self, Asked, End},
    keep::{self, Verdict, Why},
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
        let decision = cached.first(cache, began);
        let mut conditions = HeaderMap::new();
        let looked = &cached.looked;
        let conditional = cache.ask(looked, decision, &self.request.headers, &mut conditions);
        let refreshes = decision == Decision::StaleWhileRevalidating;
        let answer = self.sent(began, (refreshes, &conditions), &mut permit).await?;
        if answer.head.status != StatusCode::NOT_MODIFIED {
            return self.arrived(cache, cached, answer).await;
        }
        if conditional {
            let arrived = self.arrived_head(&answer);
            let settled = cache.not_modified(&cached.key, looked, &self.request.headers, &arrived);
            if let Some(settled) = settled {
                return Ok(self.validated(settled));
            }
            // It speaks of no copy that is held: only the whole answer helps (C23).
            permit = answer.stream.give_up();
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
        let sent = route.upstream.send(|| {
            self.connected.store(true, Ordering::Relaxed);
            let mut outgoing = forward::outgoing(
                &self.request,
                &self.authority,
                &self.peer,
                &route.via,
                &route.upstream.rewrite,
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
        let Head { response, link } = sent.await?;
        let (mut head, body) = response.into_parts();
        let asked = |name| conditions.contains_key(&name) || self.request.headers.contains_key(&name);
        let asked = Asked {
            conditional: asked(IF_NONE_MATCH) || asked(IF_MODIFIED_SINCE),
            // Ranges are not sent on; an origin that answers one all the same answers the client.
            range: asked(RANGE),
        };
        let end = framing::check(&mut head, asked)?;
        let home = std::sync::Arc::clone(&route.upstream);
        let mut stream = Stream::new(body, link, home, permit.take(), route.limits.stream_idle);
        let end = if stream.length().is_some() {
            End::Known
        } else {
            end
        };
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
            cache.head_answered(key, looked, request, &arrived);
            return self.let_through(answer.head, answer.stream, None, Keep::Leave);
        }
        let judged = if keep::is_degraded(&answer.head.headers) {
            Err(Why::Degraded)
        } else if answer.end == End::Unknown {
            Err(Why::UnknownEnd)
        } else {
            match cache.judge(looked, &arrived) {
                Judged::Storable => Ok(()),
                Judged::Not(why) => {
                    cache.supersede(key, looked, request, &arrived, why);
                    Err(Why::of(why))
                }
            }
        };
        let at = arrived.at;
        // Nothing could stand in for it, and nobody else may have it: it flows.
        let flows = judged.is_err() && !self.route.has_ladder && looked.chosen().is_none();
        let Answer {
            head,
            stream,
            end: _,
            began,
        } = answer;
        if let (Err(why), true) = (judged, flows) {
            return self.let_through(head, stream, Some(why), Keep::Leave);
        }
        let (body, lease) = match self.read(stream).await? {
            Read::Whole(body, lease) => (body, lease),
            Read::Flowing(stream, why) => {
                if judged.is_ok() && why == Why::TooLarge {
                    let arrived = Arrived {
                        status: head.status,
                        headers: &head.headers,
                        began,
                        at,
                    };
                    cache.supersede(key, looked, request, &arrived, NotShelved::TooBig);
                }
                return self.let_through(head, stream, Some(judged.err().unwrap_or(why)), Keep::Leave);
            }
        };
        let worth = judged.and_then(|()| {
            keep::is_worth_keeping(head.status, &body, &self.route.keep_if)
                .then_some(())
                .ok_or(Why::NotWorthKeeping)
        });
        if let Err(why) = worth {
            return self.whole(head, body, lease, Verdict::leave(Some(why)));
        }
        let arrived = Arrived {
            status: head.status,
            headers: &head.headers,
            began,
            at,
        };
        let fields = self.fields(&head);
        match cache.store(key, looked, request, (&arrived, &fields), &body) {
            None => self.whole(head, body, lease, Verdict::leave(None)),
            Some(settled) if in_error_set(head.status) => {
                self.note(settled.stored);
                self.whole(head, body, lease, Verdict::leave(None))
            }
            Some(settled) => Ok(self.stored(settled, fields, body, lease)),
        }
    }

    /// Hands the fields of an answer to the one who asked, as they came.
    fn stored(&self, settled: Settled, fields: HeaderMap, body: Bytes, lease: Lease) -> Reply {
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
