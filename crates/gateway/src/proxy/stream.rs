//! Decides how a body flows from an upstream to a client: with backpressure, the permit riding along.
//! It exists so that the connection goes home only after a clean end, and the permit says which end it was.
//! It refuses to hide a cut: it ends in an error, and the client sees an abort instead of a clean end.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use evenkeel::Permit;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::{
    link::Link,
    seat::CameTo,
    trouble::Trouble,
    upload::{Progress, Turn},
    upstream::Upstream,
};

/// A body on its way, and everything that is in use until it has ended.
pub(crate) struct Stream {
    /// What was read already, to be sent first.
    ahead: Bytes,
    body: Incoming,
    /// Taken when the body has ended, cleanly or not.
    link: Option<Box<Link>>,
    home: Arc<Upstream>,
    permit: Option<Permit<'static>>,
    idle_max: Duration,
    /// Runs only while nothing comes.
    idle: Option<Pin<Box<Sleep>>>,
    /// The body of the request, where there is one: it may still be on its way.
    upload: Option<Arc<Progress>>,
    /// The body was cut, and the next to ask is told.
    cut: bool,
    /// What is to be done once all of the body has come.
    at_end: Option<Box<dyn FnOnce() + Send>>,
}

impl Stream {
    pub(super) fn new(
        body: Incoming,
        link: Box<Link>,
        home: Arc<Upstream>,
        permit: Option<Permit<'static>>,
        idle_max: Duration,
    ) -> Self {
        Self {
            ahead: Bytes::new(),
            body,
            link: Some(link),
            home,
            permit,
            idle_max,
            idle: None,
            upload: None,
            cut: false,
            at_end: None,
        }
    }

    /// Goes on sending a request whose answer came before its body had ended.
    pub(super) fn beside(mut self, upload: Arc<Progress>) -> Self {
        self.upload = Some(upload);
        self
    }

    /// Does this once all of the body has come, and never if it breaks off.
    pub(super) fn then(mut self, at_end: impl FnOnce() + Send + 'static) -> Self {
        self.at_end = Some(Box::new(at_end));
        self
    }

    /// Puts what was read already in front.
    pub(super) fn put_ahead(&mut self, read: Bytes) {
        self.ahead = read;
    }

    /// Returns the length of the whole body, if the upstream said it.
    pub(super) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// Waits for the next piece of the body; `None` after a clean end.
    pub(super) async fn next(&mut self) -> Option<Result<Frame<Bytes>, Trouble>> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Goes on with an exchange that has ended already, so that its connection can carry the next one.
    pub(super) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        if !self.ahead.is_empty() {
            let ahead = std::mem::take(&mut self.ahead);
            return Poll::Ready(Some(Ok(Frame::data(ahead))));
        }
        let Some(link) = &mut self.link else {
            return Poll::Ready(self.cut.then_some(Err(Trouble::Cut)));
        };
        let mut polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_pending() {
            link.drive(context);
            polled = Pin::new(&mut self.body).poll_frame(context);
        }
        match polled {
            Poll::Pending if link.has_ended() => self.cut(false, context),
            Poll::Pending => match self.upload.as_ref().map(|upload| (upload.fault(), upload.turn())) {
                // The upstream cannot answer in full what it was not asked in full.
                Some((Some(_), _)) => {
                    if let Some(permit) = self.permit.take() {
                        permit.abandon();
                    }
                    self.cut(true, context)
                }
                Some((None, Turn::Client)) => {
                    self.idle = None;
                    Poll::Pending
                }
                Some((None, Turn::Upstream(_))) | None => self.poll_idle(context),
            },
            Poll::Ready(None) => {
                self.end(context);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(_))) => self.cut(false, context),
            Poll::Ready(Some(Ok(frame))) => {
                self.idle = None;
                // Nobody asks again after the last piece of a body of known length.
                if self.body.is_end_stream() {
                    self.end(context);
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        let idle_max = self.idle_max;
        let idle = self
            .idle
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(idle_max)));
        match idle.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => self.cut(false, context),
        }
    }

    /// Ends a body of no bytes, for whose end nobody will ask.
    pub(super) async fn end_now(&mut self) {
        std::future::poll_fn(|context| {
            self.end(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Ends cleanly: the connection goes home if it is ready for another exchange.
    fn end(&mut self, context: &mut Context<'_>) {
        self.permit = None;
        if let Some(at_end) = self.at_end.take() {
            at_end();
        }
        if let Some(mut link) = self.link.take() {
            link.came_to(CameTo::Answered);
            if link.is_done(context) {
                self.home.put(link);
            }
        }
    }

    /// Ends in a cut, of the upstream's or of the client's doing: the connection is closed.
    ///
    /// The error is told one turn later: an error makes the server drop what it has not written yet, and the
    /// client is to see the head and how far the body came.
    fn cut(
        &mut self,
        is_clients: bool,
        context: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        if let Some(permit) = self.permit.take() {
            permit.cut();
        }
        if let Some(mut link) = self.link.take()
            && !is_clients
        {
            link.came_to(CameTo::Failed);
        }
        self.cut = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Gives up a body that its client did not ask for: nothing is missing then.
    pub(super) fn dismiss(mut self) {
        self.permit = None;
        if let Some(at_end) = self.at_end.take() {
            at_end();
        }
    }

    /// Takes the permit out: the attempt goes on beyond this answer.
    pub(super) const fn take_permit(&mut self) -> Option<Permit<'static>> {
        self.permit.take()
    }

    /// Tells whether the body was cut.
    pub(super) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Tells whether the body has ended and nothing of it is left to be given.
    pub(super) fn is_over(&self) -> bool {
        self.ahead.is_empty() && !self.cut && (self.link.is_none() || self.body.is_end_stream())
    }
}

impl Drop for Stream {
    /// The client left before the body had ended.
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            permit.abandon();
        }
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.get_mut().poll_next(context)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.len() as u64;
        if self.link.is_none() && !self.cut {
            return SizeHint::with_exact(ahead);
        }
        let body = self.body.size_hint();
        if self.ahead.is_empty() {
            return body;
        }
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(ahead));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("ahead", &self.ahead.len())
            .field("ended", &self.link.is_none())
            .finish_non_exhaustive()
    }
}
