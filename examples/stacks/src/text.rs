//! Decides how messages of plain text travel over gRPC.
//! It exists so that the example of tonic needs no generated code; yours comes from `tonic-build`.
//! It refuses what is not UTF-8.

use bytes::{Buf as _, BufMut as _};
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// Messages that are plain text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, item: String, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(item.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = from.copy_to_bytes(from.remaining()).to_vec();
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| Status::internal("not text"))
    }
}
