//! Decides when the answer to a request is over, for the one line that is written about it.
//! It exists as a shell around every body, because only the body knows when it has gone out, or cannot any more.
//! It refuses to cost anything where nothing is written.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use evenkeel::Ending;
use http_body::{Body, Frame, SizeHint};

use super::{outbound::Outbound, trouble::Trouble};
use crate::telemetry::Record;

/// A body, and the record that is written when it is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    body: Outbound,
    record: Option<Box<Record>>,
}

impl Watched {
    pub(super) const fn new(body: Outbound, record: Option<Box<Record>>) -> Self {
        Self { body, record }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        if let (Some(record), Poll::Ready(Some(Ok(frame)))) = (&mut this.record, &polled) {
            record.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let (Some(record), Outbound::Stream(stream)) = (&mut self.record, &self.body) {
            if stream.is_cut() {
                record.ended(Ending::Cut);
            } else if !stream.is_over() {
                record.ended(Ending::Abandoned);
            }
        }
    }
}
