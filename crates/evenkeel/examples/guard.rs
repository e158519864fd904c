//! One guard, one call: recommendations that are live, or old and say so, or simple and say so.
//!
//! Run it: `cargo run -p evenkeel --example guard`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, fmt, time::Duration};

use evenkeel::{Class, Engine, Outage, Rung, default, stale};

/// Whose recommendations: a part of the key, made only from a name that is not empty.
#[derive(Clone)]
struct Tenant(String);

impl Tenant {
    fn new(name: &str) -> Option<Self> {
        (!name.is_empty()).then(|| Self(name.to_owned()))
    }
}

impl AsRef<str> for Tenant {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// In which language; another type, so that the two cannot be swapped.
#[derive(Clone, Copy)]
enum Locale {
    De,
}

impl AsRef<str> for Locale {
    fn as_ref(&self) -> &str {
        match self {
            Self::De => "de",
        }
    }
}

#[derive(Clone, Debug)]
struct Picks(Vec<&'static str>);

impl Picks {
    fn popular() -> Self {
        Self(vec!["bestseller"])
    }
}

#[derive(Debug)]
enum ApiError {
    Unreachable,
    TooSlow,
}

impl ApiError {
    fn class(&self) -> Class {
        match self {
            Self::Unreachable => Class::OUTAGE,
            Self::TooSlow => Class::Outage(Outage::TimedOut),
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "unreachable",
            Self::TooSlow => "too slow",
        })
    }
}

impl Error for ApiError {}

/// Stands for a client of the recommendation service.
struct Api {
    is_up: bool,
}

impl Api {
    async fn picks(&self, within: Duration) -> Result<Picks, ApiError> {
        if within < Duration::from_millis(1) {
            return Err(ApiError::TooSlow);
        }
        if self.is_up {
            Ok(Picks(vec!["chair", "lamp"]))
        } else {
            Err(ApiError::Unreachable)
        }
    }
}

fn render(picks: &Picks) -> String {
    format!("for you: {}", picks.0.join(", "))
}

fn render_with_age(picks: &Picks, age: Option<Duration>) -> String {
    let seconds = age.unwrap_or_default().as_secs();
    format!("for you, as of {seconds} s ago: {}", picks.0.join(", "))
}

fn render_plain(picks: &Picks) -> String {
    format!("popular: {}", picks.0.join(", "))
}

/// Calls a service that is up, goes down, and is asked for somebody it has never seen.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let engine = Engine::system(); // real clock and seed; clones share one state
    let picks = engine
        .read::<Picks>("recommendations")
        .scope::<(Tenant, Locale)>() // a call without both does not compile
        .timeout(Duration::from_millis(250))
        .deadline(Duration::from_millis(300))
        .concurrency(64)
        .breaker(|b| b.consecutive(3))
        .classify(ApiError::class) // outage, refusal, busy or fault: your errors, your table
        .ladder([stale(Duration::from_secs(120)), default(Picks::popular)])
        .build()?; // every problem at once

    for (tenant, is_up, expected) in [
        ("acme", true, Rung::Live),
        ("acme", false, Rung::Stale),
        ("umbrella", false, Rung::Default),
    ] {
        let (tenant, locale) = (Tenant::new(tenant).ok_or("a tenant has a name")?, Locale::De);
        let api = &Api { is_up };

        let answer = picks
            .call((tenant, locale), "home", |call| async move {
                api.picks(call.remaining()).await
            })
            .await?; // Err = refused, with the original cause

        let page = match answer.rung {
            Rung::Live | Rung::Fresh => render(&answer),
            Rung::Stale => render_with_age(&answer, answer.age),
            Rung::Alternate | Rung::Default => render_plain(&answer),
        };
        println!("{page}");
        assert_eq!(answer.rung, expected);
    }
    Ok(())
}

#[allow(dead_code, reason = "the tests include this file and call `run`")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
