//! Decides which fields say whose data a request is about, and from whom they are believed.
//! It exists as one short list of parts, so that routes, keys and the stripping of client fields mean the same ones.
//! It refuses to take identity from anybody who merely sends a field: an authority or a listed peer has to say it.

use http::HeaderName;

use super::{keys, reader::Fields, rewrite};

/// A part of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentityPart {
    /// On whose behalf: a customer, a shop, a team.
    Tenant,
    /// The person or program itself, the principal.
    Subject,
    /// What it may do, where answers depend on that.
    Entitlements,
}

impl IdentityPart {
    /// Every part, in the order of the reference page.
    pub const ALL: [Self; 3] = [Self::Tenant, Self::Subject, Self::Entitlements];

    /// Returns the word of the contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Subject => "subject",
            Self::Entitlements => "entitlements",
        }
    }
}

/// The fields that say whose data a request is about, as far as they are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity([Option<HeaderName>; IdentityPart::ALL.len()]);

impl Identity {
    /// Returns the field of a part.
    #[must_use]
    pub fn field(&self, part: IdentityPart) -> Option<&HeaderName> {
        self.parts()
            .find(|(known, _)| *known == part)
            .map(|(_, name)| name)
    }

    /// Yields the parts that are named, each with its field.
    pub fn parts(&self) -> impl Iterator<Item = (IdentityPart, &HeaderName)> {
        IdentityPart::ALL
            .into_iter()
            .zip(&self.0)
            .filter_map(|(part, name)| Some((part, name.as_ref()?)))
    }

    /// Tells whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts().next().is_none()
    }
}

/// Reads the table of fields under `key`.
pub(super) fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Identity {
    const EXAMPLE: &str = "\"x-user\"";
    let Some(value) = fields.value(key) else {
        return Identity::default();
    };
    let place = fields.place_of(key);
    let mut reader = fields.reader();
    let Some(mut inner) = reader.open(place, value, keys::IDENTITY) else {
        return Identity::default();
    };
    let mut identity = Identity::default();
    for (place, part) in IdentityPart::ALL.into_iter().enumerate() {
        let Some(text) = inner.text(part.as_str(), EXAMPLE) else {
            continue;
        };
        let Some(name) = rewrite::name(&mut inner, part.as_str(), &text, EXAMPLE) else {
            continue;
        };
        if name.as_str().contains('_') || identity.0.iter().flatten().any(|known| *known == name) {
            inner.problem(
                part.as_str(),
                &format!("\"{name}\""),
                "a field of its own, with hyphens: many servers read an underscore as one",
                &format!("write `{} = {EXAMPLE}`, say", part.as_str()),
            );
        } else if let Some(field) = identity.0.get_mut(place) {
            *field = Some(name);
        }
    }
    if identity.is_empty() {
        inner.problem(
            "",
            "no field",
            "at least one of tenant, subject and entitlements",
            &format!("write `{key} = {{ subject = {EXAMPLE} }}`, or remove it"),
        );
    }
    identity
}
