//! Decides what a body on its way to a client is: nothing, bytes, or a stream.
//! It exists so that the server has one body type that is not boxed.
//! It refuses to give room for held-back bodies back before the client has taken the bytes.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::{buffers::Lease, stream::Stream, trouble::Trouble};

/// A body on its way to a client.
#[derive(Debug)]
pub(crate) enum Outbound {
    /// No bytes, or all of them given.
    Empty,
    /// All bytes at once.
    Bytes(Bytes),
    /// Bytes as they come.
    Stream(Box<Stream>),
}

/// Bodies up to this size give their room back at once: with [`super::Limits::connections`] clients that do not read
/// they take 160 MiB, and nearly every answer is spared an allocation.
const SMALL: usize = 16 << 10;

/// A body and the room that it takes for as long as anybody, the server's queue included, has a part of it.
struct Roomed {
    bytes: Bytes,
    _room: Lease,
}

impl AsRef<[u8]> for Roomed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Outbound {
    /// Sends these bytes, which take this room until they are sent.
    pub(super) fn bytes(bytes: Bytes, room: Option<Lease>) -> Self {
        Self::Bytes(match room {
            Some(room) if bytes.len() > SMALL => Bytes::from_owner(Roomed { bytes, _room: room }),
            Some(_) | None => bytes,
        })
    }
}

impl Body for Outbound {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Stream(stream) => stream.poll_next(context),
            Self::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                *this = Self::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(stream) => stream.size_hint(),
        }
    }
}
