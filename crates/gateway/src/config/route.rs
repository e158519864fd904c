//! Decides what a contract promises on one route: which paths, from where, how fast, and what stands in.
//! It exists so that a route is a value that can be checked, compared and shown before it ever serves anybody.
//! It refuses settings that could have no effect beside the others: each would read like a promise.

use std::time::Duration;

use evenkeel::http::IgnoredCookies;
use evenkeel_core::{Criticality, ReadDraft, RefreshRules, WhenBusy, codes};
use http::HeaderName;
use toml::{Spanned, de::DeValue};

use super::{
    caching::{self, Caching},
    conditions::{self, Conditions},
    dangers,
    forwarding::{self, Class, OtherMethods},
    identity::IdentityPart,
    keep_if::{self, KeepIf},
    keys,
    ladder::{self, Alternate, DefaultAnswer, Known, Rung},
    late, lints,
    pattern::Pattern,
    protection::Doors,
    reader::Fields,
    refresh, room,
};

/// One route.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its name, a metric label.
    pub name: String,
    /// The paths it covers.
    pub pattern: Pattern,
    /// What a request has to be beside that.
    pub conditions: Conditions,
    /// What its answers mean.
    pub class: Class,
    /// What becomes of methods beside GET and HEAD.
    pub other_methods: OtherMethods,
    /// The most bytes of the body of a request that is forwarded.
    pub max_request_body: u64,
    /// The name of its dependency.
    pub from: String,
    /// The longest span of a whole call, to the first byte of the answer.
    pub deadline: Duration,
    /// The name of the authority that decides first, if there is one.
    pub authorize: Option<String>,
    /// The parts of a request that say whose data it is about.
    pub scope: Vec<ScopePart>,
    /// The rungs below live.
    pub ladder: Vec<Rung>,
    /// The share of live answers, in parts per million, beside which alternate and default are tried too.
    pub exercise: Option<u32>,
    /// What local refusals lead to.
    pub when_busy: WhenBusy,
    /// Nothing but an answer asked for this call.
    pub exact: bool,
    /// Which successes are good enough to be kept.
    pub keep_if: KeepIf,
    /// The largest body that is held back until it is complete.
    pub max_body: usize,
    /// Whether calls at the same time for the same key share one attempt.
    pub coalesce: bool,
    /// How much its requests matter where permits are scarce.
    pub criticality: Criticality,
    /// How it caches; `None` where it always asks.
    pub caching: Option<Caching>,
    /// The cookies that have no influence on answers.
    pub ignored_cookies: IgnoredCookies,
    /// The field with the tags by which its answers are purged.
    pub tags: Option<http::HeaderName>,
    /// It only watches: everything is forwarded, and it is counted what would have been done.
    pub observe_only: bool,
    /// When copies answer although nothing has failed.
    pub refresh: RefreshRules,
}

/// Where a scope part comes from. A request without it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopePart {
    /// A named part of the path.
    Path(String),
    /// A query parameter, exactly once.
    Query(String),
    /// What an authority or a listed peer says in this field.
    Identity(IdentityPart, HeaderName),
}

impl ScopePart {
    /// Returns the field that says it, where an identity is meant.
    #[must_use]
    pub const fn field(&self) -> Option<&HeaderName> {
        match self {
            Self::Identity(_, name) => Some(name),
            Self::Path(_) | Self::Query(_) => None,
        }
    }
}

impl Route {
    /// What a person waits for a page without giving up.
    pub const DEADLINE: Duration = Duration::from_secs(3);
    /// Larger answers are downloads; holding them back would cost more than a cut.
    pub const MAX_BODY: usize = 1 << 20;

    /// Returns the age limit of the stale rung, if there is one.
    #[must_use]
    pub fn stale(&self) -> Option<Duration> {
        self.ladder.iter().find_map(|rung| match rung {
            Rung::Stale(max_age) => Some(*max_age),
            Rung::Alternate(_) | Rung::Default(_) => None,
        })
    }

    /// Tells whether its copies are those of one principal each.
    #[must_use]
    pub fn is_private(&self) -> bool {
        let is_subject = |part: &ScopePart| matches!(part, ScopePart::Identity(IdentityPart::Subject, _));
        self.scope.iter().any(is_subject)
    }

    /// Returns what the engine checks and obeys of it.
    #[must_use]
    pub fn draft(&self) -> ReadDraft {
        ReadDraft {
            name: self.name.clone(),
            deadline: Some(self.deadline),
            fresh_for: None,
            ladder: self.ladder.iter().map(Rung::rule).collect(),
            exact: self.exact,
            when_busy: self.when_busy,
            coalesce: self.coalesce,
            criticality: self.criticality,
            refresh: RefreshRules {
                // Copies by the rules of HTTP bring their own, and share attempts.
                own_lifetimes: self.caching.is_some() && !self.exact,
                ..self.refresh
            },
        }
    }

    /// Returns the declared constant, if there is one.
    #[must_use]
    pub fn default_answer(&self) -> Option<&DefaultAnswer> {
        self.ladder.iter().find_map(|rung| match rung {
            Rung::Default(answer) => Some(answer),
            Rung::Stale(_) | Rung::Alternate(_) => None,
        })
    }

    /// Returns the dependency that is asked in place of the first, if there is one.
    #[must_use]
    pub fn alternate(&self) -> Option<&Alternate> {
        self.ladder.iter().find_map(|rung| match rung {
            Rung::Alternate(alternate) => Some(alternate),
            Rung::Stale(_) | Rung::Default(_) => None,
        })
    }
}

/// Returns the name that a route is written down with, if it is a text.
pub(super) fn name_of<'t>(route: &'t Spanned<DeValue<'t>>) -> Option<&'t str> {
    route.get_ref().as_table()?.get("name")?.get_ref().as_str()
}

pub(super) fn read(
    known: Known<'_>,
    doors: &Doors<'_>,
    earlier: &[Route],
    mut fields: Fields<'_, '_>,
) -> Option<Route> {
    let name = fields.required_text("name", "\"product\"");
    if let Some(name) = &name
        && earlier.iter().any(|route| route.name == *name)
    {
        let at = fields.first_named(name).unwrap_or_default();
        fields.lint(
            lints::DUPLICATE_NAME,
            "name",
            &format!("\"{name}\", as another route ({at})"),
            "a name of its own",
            "rename one of them",
        );
    }
    let (pattern, conditions) = matched(&mut fields, earlier).unzip();
    let conditions = conditions.unwrap_or_default();
    let forwarding = forwarding::read(&mut fields, &conditions);
    let from = fields.required_text("from", "\"catalog\"");
    if let Some(from) = &from {
        known.refuse_unknown(&mut fields, "from", from);
    }
    let deadline = fields.duration("deadline", "\"3s\"").unwrap_or(Route::DEADLINE);
    let authorize = doors.authorize(&mut fields);
    let scope = scope(&mut fields, pattern.as_ref(), doors, authorize.as_deref());
    let ladder = ladder::read(&mut fields, known, from.as_deref());
    let exercise = ladder::read_exercise(&mut fields, &ladder);
    let when_busy = fields.word(
        "when_busy",
        &[("ladder", WhenBusy::Ladder), ("refuse", WhenBusy::Refuse)],
    );
    let exact = fields.boolean("exact").unwrap_or_default();
    let keep_if = keep_if::read(&mut fields);
    let max_body = fields.size("max_body", 1, 1 << 30, "\"1MiB\"");
    let coalesce = fields.boolean("coalesce").unwrap_or_default();
    let criticality = room::read_criticality(&mut fields);
    let caching = caching::read(&mut fields);
    let ignored_cookies = caching::ignored_cookies(&mut fields);
    let tags = super::steering::tags(&mut fields);
    let keeps = caching.is_some() || ladder.iter().any(|rung| matches!(rung, Rung::Stale(_)));
    let is_read = forwarding.class == Class::Read;
    let refresh = if is_read {
        let late = late::read(&mut fields, known, from.as_deref(), keeps);
        refresh::read(&mut fields, late)
    } else {
        RefreshRules::default()
    };
    for (key, useless, needs) in [
        ("when_busy", ladder.is_empty() && is_read, "a ladder"),
        (
            "max_body",
            ladder.is_empty() && !coalesce && caching.is_none() && !keep_if.faults && is_read,
            "a ladder, `coalesce` or `freshness`",
        ),
        ("tags", !keeps && is_read, "a stale rung or `freshness`"),
        (
            "keep_if",
            !keeps && !keep_if.faults && is_read,
            "a stale rung or `freshness`",
        ),
        (
            "ignore_cookies",
            !keeps && !coalesce && is_read,
            "a stale rung, `coalesce` or `freshness`",
        ),
    ] {
        if useless && fields.has(key) {
            fields.lint(
                codes::NO_EFFECT,
                key,
                &format!("set without {needs}"),
                &format!("only beside {needs}: without one it has no effect"),
                &format!("add {needs}, or remove `{key}`"),
            );
        }
    }
    let when_busy = when_busy.unwrap_or_default();
    let is_named = name.is_some();
    let is_whole = is_named && pattern.is_some() && from.is_some();
    let route = Route {
        name: name.unwrap_or_default(),
        pattern: pattern.unwrap_or_default(),
        conditions,
        class: forwarding.class,
        other_methods: forwarding.other_methods,
        max_request_body: forwarding.max_request_body,
        from: from.unwrap_or_default(),
        deadline,
        authorize,
        scope,
        ladder,
        exercise,
        when_busy,
        exact,
        keep_if,
        max_body: max_body
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(Route::MAX_BODY),
        coalesce,
        criticality,
        caching,
        ignored_cookies,
        tags,
        observe_only: fields.boolean("observe_only").unwrap_or(known.observe_only),
        refresh,
    };
    if is_named && let Err(found) = route.draft().check() {
        fields.absorb(found);
    }
    dangers::check_route(&mut fields, &route);
    is_whole.then_some(route)
}

fn matched(fields: &mut Fields<'_, '_>, earlier: &[Route]) -> Option<(Pattern, Conditions)> {
    const EXAMPLE: &str = "{ path = \"/products/{id}\" }";
    fields.require("match", EXAMPLE);
    let value = fields.value("match")?;
    let place = fields.place_of("match");
    let mut reader = fields.reader();
    let mut inner = reader.open(place, value, keys::MATCH)?;
    let conditions = conditions::read(&mut inner);
    let text = inner.required_text("path", "\"/products/{id}\"")?;
    match Pattern::parse(&text) {
        Err(why) => {
            inner.problem(
                "path",
                &format!("\"{text}\": {why}"),
                "/literal, /{name} for one segment, /{name..} for the rest",
                "write `path = \"/products/{id}\"`, say",
            );
            None
        }
        Ok(pattern) => {
            if let Some(other) = earlier
                .iter()
                .find(|route| route.pattern.same_paths(&pattern) && route.conditions.conflict(&conditions))
            {
                inner.lint(
lints::SAME_REQUESTS,
                    "path",
                    &format!(
                        "\"{text}\", the same paths as route \"{}\", for requests that both cover with equal right",
                        other.name
                    ),
                    "paths of its own, or a host, method or header that tells the two apart",
                    "remove one of the two routes, or add a condition to one",
                );
            }
            Some((pattern, conditions))
        }
    }
}

fn scope(
    fields: &mut Fields<'_, '_>,
    pattern: Option<&Pattern>,
    doors: &Doors<'_>,
    authorize: Option<&str>,
) -> Vec<ScopePart> {
    let mut parts = Vec::new();
    for text in fields.texts("scope", "[\"path:tenant\"]").unwrap_or_default() {
        let part = match text.split_once(':') {
            Some(("path", name)) if pattern.is_none_or(|pattern| pattern.names(name)) => {
                Some(ScopePart::Path(name.to_owned()))
            }
            Some(("query", name)) if !name.is_empty() => Some(ScopePart::Query(name.to_owned())),
            Some(_) => None,
            None => match doors.identity_part(fields, &text, authorize) {
                Ok(part) => part,
                // It has been told.
                Err(()) => continue,
            },
        };
        match part {
            Some(part) if parts.contains(&part) => {
                fields.lint(
                    lints::LISTED_TWICE,
                    "scope",
                    &format!("\"{text}\" twice"),
                    "each part once",
                    "remove one",
                );
            }
            Some(part) => parts.push(part),
            None => fields.problem(
                "scope",
                &format!("\"{text}\""),
                "path:<name of a part of the path in `match`>, query:<name of a parameter>, tenant, subject, entitlements",
                "write `scope = [\"query:lang\"]`, say",
            ),
        }
    }
    parts
}
