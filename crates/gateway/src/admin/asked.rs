//! Decides how a request of the administration port is read: its parameters and its body, both bounded.
//! It exists so that no address has to read a body by itself, and none can forget a bound.
//! It refuses bodies that are too large or too slow, and JSON that is no object.

use std::{net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use evenkeel_http::problem::ProblemKind;
use http::{Request, request::Parts};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Map, Value};

use super::reply::Refused;

/// The longest for the whole body of one request.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// A request that may be answered.
#[derive(Debug)]
pub(super) struct Asked {
    /// Who asks.
    pub(super) peer: SocketAddr,
    pub(super) head: Parts,
    pub(super) body: Bytes,
}

impl Asked {
    /// Reads a request whose body has at most `max` bytes.
    pub(super) async fn read(
        peer: SocketAddr,
        request: Request<Incoming>,
        max: usize,
    ) -> Result<Self, Refused> {
        let (head, body) = request.into_parts();
        let body = tokio::time::timeout(BODY_WITHIN, whole(body, max))
            .await
            .map_err(|_| Refused::plain(ProblemKind::RequestTimedOut))??;
        Ok(Self { peer, head, body })
    }

    /// Returns a parameter of the query, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let query = self.head.uri.query()?;
        query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then(|| decoded(value))
        })
    }

    /// Reads the body as one JSON object of which only `keys` are known.
    pub(super) fn object(&self, keys: &[&str]) -> Result<Object, Refused> {
        let bad = |detail: String| Refused::because(ProblemKind::BadRequest, detail);
        let value: Value = serde_json::from_slice(&self.body)
            .map_err(|error| bad(format!("the body is no JSON: {error}; send one object")))?;
        let Value::Object(members) = value else {
            return Err(bad(format!("the body is {value}; send one object")));
        };
        if let Some(unknown) = members.keys().find(|key| !keys.contains(&key.as_str())) {
            let known = keys.join(", ");
            return Err(bad(format!("unknown member {unknown:?}; known: {known}")));
        }
        Ok(Object(members))
    }
}

/// The members of a JSON object that was sent here.
#[derive(Debug)]
pub(super) struct Object(Map<String, Value>);

impl Object {
    /// Returns a truth value; false where there is none.
    pub(super) fn flag(&self, key: &str) -> Result<bool, Refused> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(Refused::because(
                ProblemKind::BadRequest,
                format!("{key} is {other}; write true or false"),
            )),
        }
    }

    /// Returns a text; `None` where there is none, or null.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, Refused> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Refused::because(
                ProblemKind::BadRequest,
                format!("{key} is {other}; write a text in quotes"),
            )),
        }
    }

    /// Returns a text that must be there.
    pub(super) fn required(&self, key: &str) -> Result<&str, Refused> {
        self.text(key)?.ok_or_else(|| {
            Refused::because(
                ProblemKind::BadRequest,
                format!("{key} is missing; it is required"),
            )
        })
    }
}

async fn whole(mut body: Incoming, max: usize) -> Result<Bytes, Refused> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| Refused::because(ProblemKind::BadRequest, "the body broke off; send it whole"))?;
        let Ok(piece) = frame.into_data() else { continue };
        if read.len() + piece.len() > max {
            return Err(Refused::because(
                ProblemKind::BodyTooLarge,
                format!("at most {max} bytes are taken here"),
            ));
        }
        read.extend_from_slice(&piece);
    }
    Ok(read.freeze())
}

/// Encodes a text so that it can stand in a query, and in a shell as it is.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~/:".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Undoes percent-encoding. What is none stays as it is.
pub(super) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let pair = bytes
            .get(at + 1..at + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (byte, pair) {
            (b'%', Some(value)) => {
                out.push(value);
                at += 3;
            }
            (b'+', _) => {
                out.push(b' ');
                at += 1;
            }
            (other, _) => {
                out.push(*other);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_decoded_and_what_is_no_encoding_stays() {
        for (written, meant) in [
            ("a%2Fb", "a/b"),
            ("a+b%20c", "a b c"),
            ("100%", "100%"),
            ("%zz%+1", "%zz% 1"),
            ("%c3%a4", "\u{e4}"),
        ] {
            assert_eq!(decoded(written), meant);
        }
    }
}
