//! A shared attempt whose error cannot be copied for each of those who wait.

use evenkeel::{Class, Engine};

struct Tenant(&'static str);
struct Locale(&'static str);

impl AsRef<str> for Tenant {
    fn as_ref(&self) -> &str {
        self.0
    }
}

impl AsRef<str> for Locale {
    fn as_ref(&self) -> &str {
        self.0
    }
}

struct Down;

fn main() {
    let guard = Engine::system()
        .read::<u32>("g")
        .scope::<(Tenant, Locale)>()
        .classify(|_: &Down| Class::OUTAGE)
        .coalesce()
        .build()
        .unwrap();
    drop(guard.call((Tenant("acme"), Locale("de")), "k", |_| async { Ok(1) }));
}
