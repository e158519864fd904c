//! Decides which copies of a gateway a purge concerns: by URI, by prefix, by tag, by route, in every scope and variant.
//! It exists because a person names what the clients ask for, and the stores know keys.
//! It refuses to stall traffic: stores are walked step by step, by a thread that no request waits for.

use std::{collections::BTreeSet, time::Duration};

use evenkeel::{Concerns, KeyParts, Purge, Purged, http::Shelved};
use evenkeel_core::store as stored;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;

use super::{app::App, authority, data, whole::Reply};

/// What is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// One URI, with all its copies.
    Uri(Place),
    /// Every URI that begins so.
    Prefix(Place),
    /// Every answer that carries this tag.
    Tag(String),
    /// Everything of one route.
    Route(String),
}

/// Where a URI is, as far as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Scheme and authority; `None` means all.
    pub(crate) site: Option<(&'static str, String)>,
    /// Path and query.
    pub(crate) target: String,
}

impl Place {
    /// Reads a URI, or a path alone for every host.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self {
                site: None,
                target: text.to_owned(),
            });
        }
        let wrong = || {
            format!(
                "{text:?} is no URI; write http://shop.example/products/42, or /products/42 for every host"
            )
        };
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", rest),
            Some(_) | None => return Err(wrong()),
        };
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if host.is_empty() {
            return Err(wrong());
        }
        let host = HeaderValue::from_str(host).map_err(|_| wrong())?;
        let host = authority::normalised(&host, scheme);
        Ok(Self {
            site: Some((scheme, host.to_str().map_err(|_| wrong())?.to_owned())),
            target: if path.is_empty() {
                "/".to_owned()
            } else {
                path.to_owned()
            },
        })
    }

    fn is_site_of(&self, key: &KeyParts<'_>) -> bool {
        self.site.as_ref().is_none_or(|(scheme, host)| {
            key.scope.first() == Some(scheme) && key.scope.get(1) == Some(&host.as_str())
        })
    }

    pub(super) fn is(&self, key: &KeyParts<'_>) -> bool {
        key.key == self.target.as_bytes() && self.is_site_of(key)
    }

    pub(super) fn begins(&self, key: &KeyParts<'_>) -> bool {
        key.key.starts_with(self.target.as_bytes()) && self.is_site_of(key)
    }
}

/// What a purge came to in both stores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Of routes that always ask.
    pub(crate) snapshots: Purged,
    /// Of routes that cache.
    pub(crate) uris: Purged,
    /// In the store on disk, if there is one: `Err` where it is not durable yet.
    pub(crate) stored: Option<Result<u64, String>>,
}

/// How long a purge waits until it is durable.
const DURABLE_WITHIN: Duration = Duration::from_secs(30);

/// Purges follow one another: each walks through everything that is kept.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl App {
    /// Purges what is named, and what attempts that have begun up to now may yet bring for it. To be called where it may
    /// take as long as it takes to look at every key.
    ///
    /// # Errors
    /// When there is no such route, or no route has tags.
    pub(crate) fn purge(&self, selection: &Selection, how: Purge) -> Result<Report, String> {
        let _turn = ONE_AT_A_TIME.lock();
        let concerns = self.concerns(selection)?;
        let fields: Vec<HeaderName> = self
            .routes
            .iter()
            .filter_map(|route| route.tags.clone())
            .collect();
        let tag = match selection {
            Selection::Tag(tag) => Some(&**tag),
            Selection::Uri(_) | Selection::Prefix(_) | Selection::Route(_) => None,
        };
        let at = self.process.engine.now().mono;
        let held = |reply: &Reply| {
            tag.is_none_or(|tag| match reply {
                Reply::Whole(whole) => whole.tags.as_deref().is_some_and(|tags| has_tag(tags, tag)),
                Reply::Streamed(..) | Reply::Cached(..) | Reply::Default(_) => false,
            })
        };
        let on_shelf = |copy: &Shelved| {
            tag.is_none_or(|tag| {
                let headers = copy.headers(0);
                fields
                    .iter()
                    .filter_map(|field| tags(&headers, field))
                    .any(|tags| has_tag(&tags, tag))
            })
        };
        let in_memory = || {
            let snapshots = self.process.memory.purge(how, at, &concerns, held);
            (snapshots, self.process.shelf.purge(how, at, &concerns, on_shelf))
        };
        let (snapshots, uris) = in_memory();
        let stored = self.process.store.get().map(|store| {
            let told = store.purge(selection.stored(), stored_how(how));
            // Until then it may have given back what is purged.
            let _again = in_memory();
            told.recv_timeout(DURABLE_WITHIN)
                .map_err(|_| "it is not done yet".to_owned())
                .and_then(|purged| purged.map_err(|error| error.to_string()))
        });
        for route in &self.routes {
            route.guard.detach(&concerns);
        }
        Ok(Report {
            snapshots,
            uris,
            stored,
        })
    }

    fn concerns(&self, selection: &Selection) -> Result<Concerns, String> {
        Ok(match selection.clone() {
            Selection::Uri(place) => Concerns::keys(move |key| place.is(key)),
            Selection::Prefix(place) => Concerns::keys(move |key| place.begins(key)),
            Selection::Tag(_) => {
                // What an attempt under way will be tagged with nobody knows.
                let tagged = self.routes.iter().filter(|route| route.tags.is_some());
                let names: BTreeSet<String> = tagged.map(|route| route.name.to_string()).collect();
                if names.is_empty() {
                    return Err(
                        "no route of the contract has tags; set `tags = \"surrogate-key\"` on one".to_owned(),
                    );
                }
                Concerns::keys(move |key| names.contains(data::route_of(key.guard)))
            }
            Selection::Route(name) => {
                if !self.routes.iter().any(|route| *route.name == *name) {
                    let names: Vec<&str> = self.routes.iter().map(|route| &*route.name).collect();
                    return Err(format!(
                        "there is no route {name:?} that keeps anything; there is: {}",
                        names.join(", ")
                    ));
                }
                Concerns::keys(move |key| data::route_of(key.guard) == name)
            }
        })
    }
}

impl Selection {
    /// Returns it in the words of stores.
    fn stored(&self) -> stored::Purge {
        let uri = |place: &Place| {
            let site = place.site.as_ref();
            site.map(|(scheme, host)| format!("{scheme}://{host}{}", place.target))
        };
        match self {
            Self::Uri(place) => {
                uri(place).map_or_else(|| stored::Purge::Target(place.target.clone()), stored::Purge::Uri)
            }
            Self::Prefix(place) => uri(place).map_or_else(
                || stored::Purge::TargetPrefix(place.target.clone()),
                stored::Purge::Prefix,
            ),
            Self::Tag(tag) => stored::Purge::Tag(tag.clone()),
            Self::Route(name) => stored::Purge::Route(name.clone()),
        }
    }
}

const fn stored_how(how: Purge) -> stored::PurgeHow {
    match how {
        Purge::Hard => stored::PurgeHow::Hard,
        Purge::Soft => stored::PurgeHow::Soft,
    }
}

/// Returns the tags of an answer, as its origin wrote them.
pub(super) fn tags(headers: &HeaderMap, field: &HeaderName) -> Option<String> {
    let lines = headers
        .get_all(field)
        .iter()
        .filter_map(|line| line.to_str().ok());
    let lines: Vec<&str> = lines.collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// Yields the tags of an answer one by one: they are parted by blanks or commas, whoever's habit it is.
pub(super) fn each_tag(tags: &str) -> impl Iterator<Item = &str> {
    tags.split([' ', '\t', ',']).filter(|tag| !tag.is_empty())
}

/// Tells whether a tag is among those of an answer.
fn has_tag(tags: &str, tag: &str) -> bool {
    each_tag(tags).any(|one| one == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key<'k>(scope: &[&'k str], target: &'k str) -> KeyParts<'k> {
        KeyParts {
            guard: "r",
            scope: scope.to_vec(),
            key: target.as_bytes(),
        }
    }

    #[test]
    fn a_uri_is_read_as_its_key_is_written() {
        let place = Place::read("HTTP://Shop.Example:80/a?b").unwrap();
        assert!(place.is(&key(&["http", "shop.example"], "/a?b")));
        assert!(
            place.is(&key(&["http", "shop.example", "acme"], "/a?b")),
            "in every scope"
        );
        assert!(!place.is(&key(&["https", "shop.example"], "/a?b")));
        assert!(!place.is(&key(&["http", "other.example"], "/a?b")));
        assert!(!place.is(&key(&["http", "shop.example"], "/a")));
        assert_eq!(Place::read("https://a.example").unwrap().target, "/");
        for wrong in ["", "a", "ftp://a/", "http:///a", "http://\n/"] {
            assert!(Place::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_alone_means_every_host_and_a_prefix_everything_below() {
        let place = Place::read("/a").unwrap();
        for host in ["a.example", "b.example"] {
            assert!(place.is(&key(&["http", host], "/a")));
            assert!(place.begins(&key(&["http", host], "/a/b?c")));
        }
        assert!(!place.begins(&key(&["http", "a.example"], "/b")));
    }

    #[test]
    fn tags_are_parted_by_blanks_or_commas_and_compared_whole() {
        for tags in ["one two", "two", "one,two", "one, two ,three"] {
            assert!(has_tag(tags, "two"), "{tags}");
            assert!(!has_tag(tags, "tw"), "{tags}");
        }
    }
}
