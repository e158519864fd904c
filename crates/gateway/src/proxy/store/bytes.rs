//! Decides how numbers, texts and fields stand in bytes that are written to a store, and are read from it again.
//! It exists so that the forms of both kinds of snapshots are made of the same few parts, each with its length.
//! It refuses to believe a length: whatever the bytes are, reading ends, with a value or without.

use std::time::Duration;

use evenkeel_http::{
    directives::ResponseDirectives,
    facts::StoredFacts,
    vary::{Nominated, Variant},
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// More fields than any head that is let in has.
const FIELDS_MAX: u32 = 4096;

/// Bytes that are being written.
#[derive(Debug, Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn yes_or_no(&mut self, yes: bool) {
        self.byte(u8::from(yes));
    }

    pub(super) fn short(&mut self, number: u16) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn number(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        // What is stored is bounded far below 4 GiB; what would not fit does not fit when it is read either.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn span(&mut self, span: Option<Duration>) {
        self.yes_or_no(span.is_some());
        if let Some(span) = span {
            self.0.extend_from_slice(&span.as_secs().to_be_bytes());
            self.0.extend_from_slice(&span.subsec_nanos().to_be_bytes());
        }
    }

    pub(super) fn fields(&mut self, fields: &HeaderMap) {
        let count = u32::try_from(fields.len()).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&count.to_be_bytes());
        for (name, value) in fields {
            self.bytes(name.as_str().as_bytes());
            self.bytes(value.as_bytes());
        }
    }

    pub(super) fn facts(&mut self, facts: &StoredFacts) {
        let said = &facts.directives;
        let flags = [
            facts.authorization,
            said.no_store,
            said.no_cache,
            said.private,
            said.public,
            said.must_revalidate,
            said.proxy_revalidate,
            said.must_understand,
            said.no_transform,
            said.unreadable,
        ];
        let word = flags
            .iter()
            .enumerate()
            .fold(0, |word, (at, flag)| word | (u16::from(*flag) << at));
        self.short(word);
        for span in [
            said.max_age,
            said.s_maxage,
            said.stale_while_revalidate,
            said.stale_if_error,
        ] {
            self.span(span);
        }
    }

    pub(super) fn variant(&mut self, variant: &Variant) {
        let names = variant.nominated().names();
        self.byte(u8::try_from(names.len()).unwrap_or(u8::MAX));
        for name in names {
            self.bytes(name.as_str().as_bytes());
        }
        self.bytes(variant.key());
    }
}

/// Bytes that are being read. Every part is `None` where they do not have it.
#[derive(Debug)]
pub(super) struct In<'b>(pub(super) &'b [u8]);

impl<'b> In<'b> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    pub(super) fn yes_or_no(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn number(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(u32::from_be_bytes(self.take()?)).ok()?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a span: `Some(None)` is one that was not said.
    #[expect(
        clippy::option_option,
        reason = "what cannot be read differs from what was not said"
    )]
    pub(super) fn span(&mut self) -> Option<Option<Duration>> {
        if !self.yes_or_no()? {
            return Some(None);
        }
        let seconds = u64::from_be_bytes(self.take()?);
        let nanos = u32::from_be_bytes(self.take()?);
        (nanos < 1_000_000_000).then(|| Some(Duration::new(seconds, nanos)))
    }

    pub(super) fn fields(&mut self) -> Option<HeaderMap> {
        let count = u32::from_be_bytes(self.take()?);
        if count > FIELDS_MAX {
            return None;
        }
        let mut fields = HeaderMap::new();
        for _ in 0..count {
            let name = HeaderName::from_bytes(self.bytes()?).ok()?;
            let value = HeaderValue::from_bytes(self.bytes()?).ok()?;
            fields.try_append(name, value).ok()?;
        }
        Some(fields)
    }

    pub(super) fn facts(&mut self) -> Option<StoredFacts> {
        let word = self.short()?;
        if word >> 10 != 0 {
            return None;
        }
        let is = |at: u32| word >> at & 1 == 1;
        Some(StoredFacts {
            authorization: is(0),
            directives: ResponseDirectives {
                no_store: is(1),
                no_cache: is(2),
                private: is(3),
                public: is(4),
                must_revalidate: is(5),
                proxy_revalidate: is(6),
                must_understand: is(7),
                no_transform: is(8),
                unreadable: is(9),
                max_age: self.span()?,
                s_maxage: self.span()?,
                stale_while_revalidate: self.span()?,
                stale_if_error: self.span()?,
            },
        })
    }

    pub(super) fn variant(&mut self) -> Option<Variant> {
        let count = self.byte()?;
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(HeaderName::from_bytes(self.bytes()?).ok()?);
        }
        let nominated = Nominated::of_names(names)?;
        Some(Variant::of_parts(nominated, self.bytes()?.to_vec()))
    }

    /// Tells whether everything was read.
    pub(super) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}
