//! Decides how routes, authorities and identity fit together across the tables of a contract.
//! It exists because a door is only as good as what stands beside it: shared permits, shared copies, a field that anybody
//! may send.
//! It refuses what would be open, or always shut, in the incident it is for.

use evenkeel_core::codes;
use http::HeaderName;

use super::{
    authority::Authority,
    dependency::Dependency,
    identity::{Identity, IdentityPart},
    lints,
    reader::{Fields, Reader, listed},
    route::{Route, ScopePart},
};

/// What is known of identity when routes are read.
#[derive(Debug)]
pub(super) struct Doors<'k> {
    /// The names of authorities, also of those that have problems of their own.
    pub(super) names: Vec<String>,
    pub(super) authorities: &'k [Authority],
    pub(super) from_peers: Option<&'k Identity>,
}

impl Doors<'_> {
    fn find(&self, name: &str) -> Option<&Authority> {
        self.authorities.iter().find(|authority| authority.name == name)
    }

    /// Reads which authority protects a route.
    pub(super) fn authorize(&self, fields: &mut Fields<'_, '_>) -> Option<String> {
        let name = fields.text("authorize", "\"sso\"")?;
        if self.names.contains(&name) {
            return Some(name);
        }
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let allowed = if known.is_empty() {
            "names of authorities; the contract has none".to_owned()
        } else {
            listed(&known)
        };
        let shown = name.escape_debug();
        fields.lint(
            lints::UNKNOWN_NAME,
            "authorize",
            &format!("\"{shown}\""),
            &allowed,
            &format!("add `[authorities.{shown}]`, or correct the name"),
        );
        None
    }

    /// Reads a part of a scope that says whose data it is; `None` if the text names none.
    ///
    /// # Errors
    /// When nobody says that part; the problem is told.
    pub(super) fn identity_part(
        &self,
        fields: &mut Fields<'_, '_>,
        text: &str,
        authorize: Option<&str>,
    ) -> Result<Option<ScopePart>, ()> {
        let Some(part) = IdentityPart::ALL.into_iter().find(|part| part.as_str() == text) else {
            return Ok(None);
        };
        let identity = match authorize {
            // What is wrong with the authority is told there.
            Some(name) => match self.find(name) {
                Some(authority) => Some(&authority.identity),
                None => return Err(()),
            },
            None => self.from_peers,
        };
        if let Some(name) = identity.and_then(|identity| identity.field(part)) {
            return Ok(Some(ScopePart::Identity(part, name.clone())));
        }
        if authorize.is_none() && fields.has("authorize") {
            return Err(());
        }
        let (who, mend) = match authorize {
            Some(name) => (
                format!("which authority \"{name}\" does not say"),
                format!("add `identity = {{ {text} = \"x-{text}\" }}` to `[authorities.{name}]`"),
            ),
            None => (
                "which nobody says".to_owned(),
                format!(
                    "add `authorize`, or `gateway.identity_from_peers = {{ {text} = \"x-{text}\" }}` where listed peers say it"
                ),
            ),
        };
        fields.lint(
            lints::UNKNOWN_NAME,
            "scope",
            &format!("\"{text}\", {who}"),
            "parts of the identity that the authority of the route or listed peers say: nobody else is believed",
            &mend,
        );
        Err(())
    }
}

/// Checks what the tables say beside each other.
pub(super) fn check(
    reader: &mut Reader<'_>,
    doors: &Doors<'_>,
    routes: &[Route],
    dependencies: &[Dependency],
) {
    let mut told = |code, place: String, seen: &str, allowed: &str, mend: &str| {
        let span = reader.places.find(&place).unwrap_or_default();
        reader.lint(code, &place, span, seen, allowed, mend);
    };
    for authority in doors.authorities {
        let place = format!("authorities.{}", authority.name);
        let uses = |route: &Route| route.authorize.as_ref() == Some(&authority.name);
        if !routes.is_empty() && !routes.iter().any(uses) {
            told(
                lints::UNUSED,
                place.clone(),
                "asked by no route",
                "authorities that a route names in `authorize`: others would have no effect",
                &format!(
                    "add `authorize = \"{}\"` to the routes it protects, or remove it",
                    authority.name
                ),
            );
        }
        let is_told = |name: &&HeaderName| doors.authorities.iter().any(|other| other.headers.contains(name));
        for name in authority.copy.iter().filter(is_told) {
            told(
                codes::BAD_VALUE,
                format!("{place}.copy"),
                &format!("\"{name}\", which an authority is told of the client's request"),
                "fields that no authority is told: the client's own are removed on every route before it is asked",
                "let the authority answer with a field of another name",
            );
        }
    }
    let is_copied = |name: &HeaderName| {
        doors
            .authorities
            .iter()
            .any(|authority| authority.copy.contains(name))
    };
    let is_a_peers = |name: &HeaderName| {
        let mut parts = doors.from_peers.iter().flat_map(|identity| identity.parts());
        parts.any(|(_, known)| known == name)
    };
    for (index, route) in routes.iter().enumerate() {
        for field in &route.conditions.fields {
            if is_copied(&field.name) && !is_a_peers(&field.name) {
                told(
                    codes::NO_EFFECT,
                    format!("routes[{index}].match.header"),
                    &format!(
                        "\"{}\", which only an authority says, and after a route is chosen",
                        field.name
                    ),
                    "fields that a client or a listed peer may send",
                    "remove it: no request would ever meet it",
                );
            }
        }
        let Some(authority) = route.authorize.as_ref().and_then(|name| doors.find(name)) else {
            continue;
        };
        let place = |key: &str| format!("routes[{index}].{key}");
        if let Some(why) = beside(route, authority, dependencies) {
            told(
                lints::AUTHORITY_ON_OWN_RESOURCE,
                place("authorize"),
                &why,
                "a dependency and resources that the route itself does not draw on: either one would take the other's permits, and fall with it",
                &format!(
                    "give the authority a dependency of its own, also where it is at the same address: `authorities.{}.from`",
                    authority.name
                ),
            );
        }
        let keeps = route.stale().is_some() || route.coalesce || route.caching.is_some();
        if keeps && !is_scoped(route) && tells_who_asks(authority) {
            let key = if route.caching.is_some() {
                "freshness"
            } else if route.coalesce {
                "coalesce"
            } else {
                "ladder"
            };
            told(
                lints::SHARED_COPIES_WITH_CREDENTIALS,
                place(key),
                "shared copies on an authenticated route",
                "copies that are somebody's: with \"subject\" or \"tenant\" in `scope`. Or shared ones where nothing behind the gateway learns who asks: an authority that copies nothing and consumes all that it is told",
                "add `scope = [\"subject\"]`, or remove what gives copies",
            );
        }
        if route
            .caching
            .as_ref()
            .is_some_and(|caching| caching.keep_set_cookie)
        {
            told(
                lints::SHARED_COPIES_WITH_CREDENTIALS,
                place("keep_set_cookie"),
                "set on an authenticated route",
                "only where nobody is known: a cookie is somebody's",
                "remove it",
            );
        }
    }
}

/// Says what an authority and the route that it protects share.
fn beside(route: &Route, authority: &Authority, dependencies: &[Dependency]) -> Option<String> {
    if authority.from == route.from {
        return Some(format!(
            "\"{}\", whose dependency \"{}\" is the route's own",
            authority.name, route.from
        ));
    }
    if route
        .alternate()
        .is_some_and(|alternate| alternate.name == authority.from)
    {
        return Some(format!(
            "\"{}\", whose dependency \"{}\" is the route's alternate",
            authority.name, authority.from
        ));
    }
    let find = |name: &str| dependencies.iter().find(|dependency| dependency.name == name);
    let (own, theirs) = (find(&route.from)?, find(&authority.from)?);
    let shared = own.uses.iter().find(|resource| theirs.uses.contains(resource))?;
    Some(format!(
        "\"{}\", whose dependency \"{}\" draws on \"{shared}\" as \"{}\" does",
        authority.name, theirs.name, own.name
    ))
}

fn is_scoped(route: &Route) -> bool {
    route.scope.iter().any(|part| part.field().is_some())
}

/// Tells whether the dependency of a route learns who asks.
fn tells_who_asks(authority: &Authority) -> bool {
    let is_passed_on = |name: &HeaderName| !authority.consume.contains(name);
    !authority.copy.is_empty() || authority.headers.iter().any(is_passed_on)
}
