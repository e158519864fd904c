//! Decides how the pieces of a body become one: a single piece as it came, several copied together.
//! It exists because nearly every body that is held back comes in one piece, and must not be copied.
//! It refuses to take more room than the body is long.

use bytes::{Bytes, BytesMut};

/// A body being read. A single piece, the usual case, is not copied; more are copied together, so that a body
/// of many small ones takes no more than its length.
pub(super) struct Pieces {
    first: Bytes,
    joined: BytesMut,
    announced: usize,
}

impl Pieces {
    pub(super) fn of(announced: usize) -> Self {
        Self {
            first: Bytes::new(),
            joined: BytesMut::new(),
            announced,
        }
    }

    pub(super) fn length(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    pub(super) fn add(&mut self, piece: Bytes) {
        if self.length() == 0 {
            self.first = piece;
            return;
        }
        if !self.first.is_empty() {
            self.joined
                .reserve(self.announced.max(self.first.len() + piece.len()));
            self.joined.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.joined.extend_from_slice(&piece);
    }

    pub(super) fn joined(self) -> Bytes {
        if self.joined.is_empty() {
            self.first
        } else {
            self.joined.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_and_an_empty_one_changes_nothing() {
        for (pieces, whole) in [
            (&[][..], ""),
            (&["", ""], ""),
            (&["a"], "a"),
            (&["", "a", "", "bc", "d"], "abcd"),
        ] {
            let mut read = Pieces::of(0);
            for piece in pieces {
                read.add(Bytes::from_static(piece.as_bytes()));
            }
            assert_eq!(read.length(), whole.len());
            assert_eq!(read.joined(), whole);
        }
    }
}
