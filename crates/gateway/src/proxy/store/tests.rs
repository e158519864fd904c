//! What is written to a store comes back as it was, and no bytes make reading fail.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel::{
    Class, Entry, Mono, Now, Terms, Wall,
    http::{Shelved, ShelvedParts, UriKey},
};
use evenkeel_core::{
    Rng,
    store::{Body, Record, Stamp},
};
use evenkeel_http::{
    dates::HttpDate,
    directives::ResponseDirectives,
    facts::StoredFacts,
    lifetime::Lifetime,
    stored::StoredCopy,
    vary::{Nominated, Variant},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{
    super::whole::{Reply, Shared, Whole},
    Times, marks, plain, shelved,
};

/// Draws whatever is to be written.
struct Draws(Rng);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0.next_u64() % most
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    fn span(&mut self) -> Option<Duration> {
        self.yes().then(|| {
            Duration::new(
                self.below(1 << 31),
                u32::try_from(self.below(1_000_000_000)).unwrap(),
            )
        })
    }

    fn fields(&mut self) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for _ in 0..self.below(6) {
            let name = ["x-a", "x-b", "content-type", "etag"][usize::try_from(self.below(4)).unwrap()];
            let value: Vec<u8> = (0..self.below(20))
                .map(|_| 32 + u8::try_from(self.below(90)).unwrap())
                .collect();
            fields.append(
                HeaderName::from_static(name),
                HeaderValue::from_bytes(&value).unwrap(),
            );
        }
        fields
    }

    fn facts(&mut self) -> StoredFacts {
        StoredFacts {
            authorization: false,
            directives: ResponseDirectives {
                no_store: false,
                no_cache: self.yes(),
                private: false,
                public: self.yes(),
                must_revalidate: self.yes(),
                proxy_revalidate: self.yes(),
                must_understand: self.yes(),
                no_transform: self.yes(),
                unreadable: self.yes(),
                max_age: self.span(),
                s_maxage: self.span(),
                stale_while_revalidate: self.span(),
                stale_if_error: self.span(),
            },
        }
    }

    fn variant(&mut self) -> Variant {
        let names = ["accept", "accept-language", "x-a"].map(HeaderName::from_static);
        let count = usize::try_from(self.below(4)).unwrap();
        let nominated = Nominated::of_names(names[..count].to_vec()).unwrap();
        let key = nominated.key_of(&self.fields());
        Variant::of_parts(nominated, key)
    }

    fn body(&mut self) -> Bytes {
        (0..self.below(300))
            .map(|_| u8::try_from(self.below(256)).unwrap())
            .collect()
    }

    fn wall(&mut self) -> Wall {
        Wall::from_nanos(i64::try_from(self.below(1 << 60)).unwrap())
    }

    fn mono(&mut self) -> Mono {
        Mono::from_nanos(i64::try_from(self.below(1 << 50)).unwrap())
    }

    fn whole(&mut self) -> (Reply, Entry) {
        let entry = Entry {
            observed: self.yes().then(|| self.mono()),
            observed_wall: self.yes().then(|| self.wall()),
            own_limit: self.span(),
            stale_forbidden: self.yes(),
            lifetime: self.span(),
            revalidate: self.span(),
            cost: self.span(),
        };
        let whole = Whole {
            class: Class::Answer,
            began: None,
            tags: self.yes().then(|| "one two".into()),
            status: StatusCode::from_u16(200 + u16::try_from(self.below(300)).unwrap()).unwrap(),
            headers: self.fields(),
            body: self.body(),
            terms: Terms::default(),
            lifetime: self.span(),
            shared: Some(Shared {
                facts: self.facts(),
                variant: self.variant(),
            }),
        };
        (Reply::Whole(Arc::new(whole)), entry)
    }

    fn shelved(&mut self) -> ShelvedParts {
        let observed = self.mono();
        ShelvedParts {
            facts: StoredCopy {
                facts: self.facts(),
                status: StatusCode::OK,
                lifetime: match self.below(3) {
                    0 => Lifetime::Unknown,
                    1 => Lifetime::Stated(self.span().unwrap_or_default()),
                    _ => Lifetime::Guessed(self.span().unwrap_or_default()),
                },
                has_validator: self.yes(),
                expired: self.yes(),
            },
            headers: self.fields(),
            body: self.body(),
            variant: self.yes().then(|| self.variant()),
            received: HttpDate::from_unix_seconds(i64::try_from(self.below(1 << 33)).unwrap()),
            began: observed.after(Duration::from_nanos(self.below(1 << 40))),
            observed,
            observed_wall: self.wall(),
        }
    }
}

/// Late enough for everything that is drawn.
fn times() -> Times {
    Times {
        now: Now {
            mono: Mono::from_nanos(1 << 60),
            wall: Wall::from_nanos(i64::MAX),
        },
        same_boot: true,
        skew: Duration::from_secs(1),
    }
}

fn key() -> UriKey {
    UriKey::of("shop", &("http", "shop.example", "acme"), "/cart?page=2").unwrap()
}

/// The wall clock says of everything here that it is older; what is compared is what was written.
fn by_boot_alone(record: &mut Record) {
    record.stamp.wall = None;
}

#[test]
fn a_snapshot_comes_back_as_it_was() {
    let mut draws = Draws(Rng::new(7));
    for _ in 0..2000 {
        let (reply, entry) = draws.whole();
        let mut record = plain::encode(key().as_bytes(), &reply, &entry).unwrap();
        assert_eq!(record.marks.uri, "http://shop.example/cart?page=2");
        assert_eq!(record.marks.route, "shop");
        assert!(!record.marks.scope.is_empty());
        by_boot_alone(&mut record);
        let (again, of_again) = plain::decode(&record, times()).unwrap();
        let (Reply::Whole(one), Reply::Whole(other)) = (&reply, &again) else {
            panic!("whole answers");
        };
        assert_eq!(
            (one.status, &one.headers, &one.body),
            (other.status, &other.headers, &other.body)
        );
        assert_eq!((one.lifetime, &one.tags), (other.lifetime, &other.tags));
        let (one, other) = (one.shared.as_ref().unwrap(), other.shared.as_ref().unwrap());
        assert_eq!((one.facts, &one.variant), (other.facts, &other.variant));
        assert_eq!(
            Entry {
                observed_wall: None,
                ..entry
            },
            of_again
        );
    }
}

#[test]
fn the_copies_of_a_uri_come_back_as_they_were() {
    let mut draws = Draws(Rng::new(7));
    for round in 0..500 {
        let parts: Vec<ShelvedParts> = (0..=round % 4).map(|_| draws.shelved()).collect();
        let copies: Vec<Arc<Shelved>> = parts
            .iter()
            .cloned()
            .map(|parts| Arc::new(Shelved::of_parts(parts)))
            .collect();
        let key = key().with_budget("/cart?page=2");
        let record = shelved::encode(&key, &copies, &[]).unwrap();
        let (again, decoded) = shelved::decode(&record, times()).unwrap();
        assert_eq!(again, key);
        assert_eq!(decoded.len(), copies.len());
        for (one, other) in copies.iter().zip(&decoded) {
            let (one, other) = (one.to_parts(), other.to_parts());
            assert_eq!(one.facts, other.facts);
            assert_eq!(
                (one.headers, one.body, one.variant),
                (other.headers, other.body, other.variant)
            );
            assert_eq!(
                (one.received, one.observed_wall),
                (other.received, other.observed_wall)
            );
            // The wall clock of these times says that it is older.
            assert!(other.observed <= one.observed);
            assert_eq!(one.began.since(one.observed), other.began.since(other.observed));
        }
        let mut soft = record;
        soft.soft = true;
        assert!(
            shelved::decode(&soft, times())
                .unwrap()
                .1
                .iter()
                .all(|copy| copy.facts().expired)
        );
    }
}

#[test]
fn what_is_one_callers_own_is_not_written_and_not_read() {
    let mut draws = Draws(Rng::new(7));
    for (private, authorization, public, is_own) in [
        (true, false, false, true),
        (false, true, false, true),
        (false, true, true, false),
        (false, false, false, false),
    ] {
        let facts = StoredFacts {
            authorization,
            directives: ResponseDirectives {
                private,
                public,
                ..ResponseDirectives::default()
            },
        };
        assert_eq!(marks::is_private(&facts), is_own);
        let mut parts = draws.shelved();
        parts.facts.facts = facts;
        let copy = Arc::new(Shelved::of_parts(parts));
        assert_eq!(shelved::encode(&key(), &[copy], &[]).is_none(), is_own);
    }
}

#[test]
fn no_bytes_make_reading_fail_and_none_that_were_changed_are_more_than_they_were() {
    let mut draws = Draws(Rng::new(7));
    for _ in 0..300 {
        let (reply, entry) = draws.whole();
        let plain_record = plain::encode(key().as_bytes(), &reply, &entry).unwrap();
        let parts = draws.shelved();
        let copies = [Arc::new(Shelved::of_parts(parts))];
        let shelved_record = shelved::encode(&key(), &copies, &[]).unwrap();
        for record in [plain_record, shelved_record] {
            for _ in 0..40 {
                let mut broken = record.clone();
                let length = broken.facts.len() as u64;
                let at = usize::try_from(draws.below(length)).unwrap();
                match draws.below(4) {
                    0 => broken.facts.truncate(at),
                    1 => broken.facts[at] ^= u8::try_from(1 + draws.below(255)).unwrap(),
                    2 => broken.facts.push(0),
                    _ => broken.body = Body::of(draws.body()),
                }
                // Whatever comes of it, it ends.
                let _plain = plain::decode(&broken, times());
                let _shelved = shelved::decode(&broken, times());
            }
        }
        let noise = Record {
            facts: draws.body().to_vec(),
            stamp: Stamp::default(),
            ..record_of(&mut draws)
        };
        let _plain = plain::decode(&noise, times());
        let _shelved = shelved::decode(&noise, times());
    }
}

fn record_of(draws: &mut Draws) -> Record {
    let (reply, entry) = draws.whole();
    plain::encode(key().as_bytes(), &reply, &entry).unwrap()
}

/// A contract that is looked at may be refused: what the one that runs says of tags and of persons stays.
#[test]
fn what_another_contract_says_of_tags_and_persons_takes_nothing_away() {
    let contract = |route: &str| {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://127.0.0.1:1\"]\n\
             [[routes]]\nname = \"r\"\nmatch = {{ path = \"/\" }}\nclass = \"read\"\nfrom = \"d\"\n\
             ladder = [ {{ stale = \"60s\" }} ]\n{route}\n"
        );
        crate::config::parse("contract.toml", &text).unwrap().contract
    };
    let slot = super::StoreSlot::default();
    slot.keep_out(&contract("tags = \"surrogate-key\""));
    slot.keep_out(&contract("tags = \"cache-tag\""));
    slot.keep_out(&contract("tags = \"cache-tag\""));
    assert_eq!(*slot.personal.fields(), ["surrogate-key", "cache-tag"]);
}
