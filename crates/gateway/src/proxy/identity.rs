//! Decides which fields of a client's request are nobody's to send, and reads whose data a request is about.
//! It exists because a field such as `X-User` is as good as a password wherever somebody behind the gateway believes it.
//! It refuses a part of an identity that is missing, empty, said twice, or not plain text: none of these is anybody.

use std::{borrow::Cow, sync::Arc};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, CONNECTION, COOKIE},
};

use crate::config::{self, Contract, IdentityPart, ScopePart};

/// The longest part of an identity. It is in every key of the one it names.
pub const IDENTITY_MAX: usize = 256;

/// The fields that say who asks. Whatever a client sends under these names is removed, on every route.
#[derive(Clone, Debug, Default)]
pub(crate) struct Personal(Option<Arc<Names>>);

#[derive(Debug)]
struct Names {
    /// What authorities say.
    copied: Vec<HeaderName>,
    /// What listed peers say.
    by_peers: Vec<HeaderName>,
    /// What authorities are told: it is decided by a field of the head, so no trailer says it anew.
    told: Vec<HeaderName>,
}

impl Personal {
    /// Collects them.
    pub(crate) fn of(contract: &Contract) -> Self {
        let mut copied: Vec<HeaderName> = Vec::new();
        for name in contract.authorities.iter().flat_map(|authority| &authority.copy) {
            if !copied.contains(name) {
                copied.push(name.clone());
            }
        }
        let by_peers = contract.gateway.identity_from_peers.parts();
        let by_peers: Vec<HeaderName> = by_peers.map(|(_, name)| name.clone()).collect();
        let told = contract
            .authorities
            .iter()
            .flat_map(|authority| &authority.headers);
        let told: Vec<HeaderName> = told.cloned().collect();
        if copied.is_empty() && by_peers.is_empty() && told.is_empty() {
            return Self(None);
        }
        let names = Names {
            copied,
            by_peers,
            told,
        };
        Self(Some(Arc::new(names)))
    }

    /// Removes from the trailers of a client what no trailer may say.
    pub(super) fn strip_trailers(&self, trailers: &mut HeaderMap) {
        self.strip(trailers, false);
        let Some(names) = &self.0 else { return };
        take_twins(trailers, &names.told);
        for name in &names.told {
            trailers.remove(name);
        }
    }

    /// Removes what the sender of these fields may not say. Many servers read an underscore in a name as a hyphen, so such
    /// a name is judged as if it had one.
    pub(super) fn strip(&self, headers: &mut HeaderMap, peer_is_listed: bool) {
        let Some(names) = &self.0 else { return };
        let gone: Vec<HeaderName> = headers
            .keys()
            .filter(|name| names.is_taken(name, peer_is_listed))
            .cloned()
            .collect();
        for name in gone {
            headers.remove(name);
        }
    }
}

/// Puts what an authority says in the place of what a client said.
///
/// `Connection` forgets that it nominated any of it: the client's own line has gone by that, and what is said instead is the
/// gateway's, which no client may nominate away (rule H11).
pub(super) fn say_instead(headers: &mut HeaderMap, names: &[HeaderName], said: &HeaderMap) {
    let is_said = |option: &[u8]| {
        let option = option.trim_ascii();
        names
            .iter()
            .any(|name| option.eq_ignore_ascii_case(name.as_str().as_bytes()))
    };
    let options = |line: &HeaderValue| line.as_bytes().split(|byte| *byte == b',').any(is_said);
    if headers.get_all(CONNECTION).iter().any(options) {
        let left: Vec<Vec<u8>> = headers
            .get_all(CONNECTION)
            .iter()
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
            .filter(|option| !is_said(option))
            .map(<[u8]>::to_vec)
            .collect();
        headers.remove(CONNECTION);
        // Made of the members of a field value.
        if let Ok(left) = HeaderValue::from_bytes(&left.join(&b","[..])) {
            headers.insert(CONNECTION, left);
        }
    }
    for name in names {
        headers.remove(name);
        for line in said.get_all(name) {
            headers.append(name.clone(), line.clone());
        }
    }
}

/// Takes out the fields that many servers read as one of these, because of an underscore for a hyphen. An authority decides by
/// the field itself, and nobody behind it must read another one in its place.
pub(super) fn take_twins(headers: &mut HeaderMap, names: &[HeaderName]) {
    let twins: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().contains('_'))
        .filter(|name| {
            let read = name.as_str().replace('_', "-");
            names.iter().any(|known| known.as_str() == read)
        })
        .cloned()
        .collect();
    for twin in twins {
        headers.remove(twin);
    }
}

impl Names {
    fn is_taken(&self, name: &HeaderName, peer_is_listed: bool) -> bool {
        let name = name.as_str();
        let read: Cow<'_, str> = if name.contains('_') {
            name.replace('_', "-").into()
        } else {
            name.into()
        };
        let by_peers = self.by_peers.iter().any(|known| known.as_str() == read);
        let copied = self.copied.iter().any(|known| known.as_str() == read);
        // A listed peer says it by its own name, and no other.
        let may_say = by_peers && peer_is_listed && matches!(read, Cow::Borrowed(_));
        (by_peers || copied) && !may_say
    }
}

/// What a route has to know of who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Who says it: an authority and what it is asked, or nothing for listed peers.
    pub(super) by: String,
    /// The fields that name the principal whose copies the route keeps; none where it keeps no private ones.
    pub(super) principal: Vec<HeaderName>,
    /// The fields by which the dependency learns who asks, although that is not in the key. A request that has one is as one
    /// with `Authorization`.
    pub(super) personal: Vec<HeaderName>,
    /// By which question and which fields of the answer it is known who asks: another way may name somebody else.
    pub(super) known_by: String,
}

impl Told {
    /// Reads it from a contract.
    pub(crate) fn of(contract: &Contract, route: &config::Route) -> Self {
        let authority = route
            .authorize
            .as_ref()
            .and_then(|name| contract.authorities.iter().find(|known| known.name == *name));
        let from_peers = &contract.gateway.identity_from_peers;
        let identity = authority.map_or(from_peers, |authority| &authority.identity);
        let scoped: Vec<&HeaderName> = route.scope.iter().filter_map(ScopePart::field).collect();
        let of_the_principal = [IdentityPart::Tenant, IdentityPart::Subject];
        let principal = if route.is_private() {
            let names = of_the_principal.iter().filter_map(|part| identity.field(*part));
            names.cloned().collect()
        } else {
            Vec::new()
        };
        let mut personal: Vec<HeaderName> = from_peers.parts().map(|(_, name)| name.clone()).collect();
        if let Some(authority) = authority {
            let passed_on = authority
                .headers
                .iter()
                .filter(|name| !authority.consume.contains(name));
            personal.extend(authority.copy.iter().chain(passed_on).cloned());
        }
        // These two the rules of HTTP know by themselves.
        personal.retain(|name| !scoped.contains(&name) && *name != AUTHORIZATION && *name != COOKIE);
        Self {
            // Another authority by the same name means other people by the same names.
            by: authority.map_or_else(String::new, |authority| {
                format!("{} {} {}", authority.name, authority.from, authority.path)
            }),
            known_by: authority.map_or_else(
                || format!("{from_peers:?}"),
                |one| {
                    format!(
                        "{} {} {} {:?} {:?} {:?} {:?} {:?}",
                        one.from,
                        one.method,
                        one.path,
                        one.headers,
                        one.consume,
                        one.copy,
                        one.deny,
                        one.identity
                    )
                },
            ),
            principal,
            personal,
        }
    }
}

/// Reads one part of an identity.
///
/// # Errors
/// What is wrong with it, in a few words.
pub(super) fn part<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<&'h str, &'static str> {
    let mut lines = headers.get_all(name).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(if headers.contains_key(name) {
            "is said twice"
        } else {
            "is missing"
        });
    };
    match line.to_str() {
        Ok("") => Err("is empty"),
        Ok(text) if text.len() > IDENTITY_MAX => Err("is too long"),
        Ok(text) => Ok(text),
        Err(_) => Err("is not plain text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn personal() -> Personal {
        Personal(Some(Arc::new(Names {
            copied: vec![HeaderName::from_static("x-user")],
            by_peers: vec![HeaderName::from_static("x-tenant")],
            told: Vec::new(),
        })))
    }

    fn left(names: &[&'static str], peer_is_listed: bool) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_static("1"),
            );
        }
        personal().strip(&mut headers, peer_is_listed);
        let mut left: Vec<String> = headers.keys().map(ToString::to_string).collect();
        left.sort_unstable();
        left
    }

    #[test]
    fn no_spelling_of_a_personal_field_is_left_and_every_other_is() {
        let sent = [
            "x-user", "X-USER", "x_user", "X_User", "x-tenant", "x_tenant", "x-users", "user",
        ];
        assert_eq!(left(&sent, false), ["user", "x-users"]);
        assert_eq!(left(&sent, true), ["user", "x-tenant", "x-users"]);
    }

    #[test]
    fn h11_a_client_cannot_nominate_away_what_an_authority_says() {
        let user = HeaderName::from_static("x-user");
        let mut headers = HeaderMap::new();
        for line in ["close, X-User", "x-other,x-user"] {
            headers.append(CONNECTION, HeaderValue::from_static(line));
        }
        let said = HeaderMap::from_iter([(user.clone(), HeaderValue::from_static("ana"))]);
        say_instead(&mut headers, std::slice::from_ref(&user), &said);
        evenkeel_http::hop::strip_hop_by_hop(&mut headers);
        assert_eq!(headers.get(&user).unwrap(), "ana");
        // Where nothing is said, nothing of the client's is left either.
        headers.insert(&user, HeaderValue::from_static("evil"));
        say_instead(&mut headers, &[user], &HeaderMap::new());
        assert!(headers.is_empty(), "{headers:?}");
    }

    #[test]
    fn a_part_is_one_line_of_plain_text_and_nothing_else_is_anybody() {
        let read = |lines: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-user", HeaderValue::from_bytes(line).unwrap());
            }
            part(&headers, &HeaderName::from_static("x-user")).map(str::to_owned)
        };
        let longest = vec![b'a'; IDENTITY_MAX];
        let longer = vec![b'a'; IDENTITY_MAX + 1];
        assert_eq!(read(&[b"ana"]), Ok("ana".to_owned()));
        assert!(read(&[&longest]).is_ok());
        assert_eq!(read(&[&longer]), Err("is too long"));
        assert_eq!(read(&[]), Err("is missing"));
        assert_eq!(read(&[b""]), Err("is empty"));
        assert_eq!(read(&[b"ana", b"ana"]), Err("is said twice"));
        assert_eq!(read(&[b"\xe4na"]), Err("is not plain text"));
    }
}
