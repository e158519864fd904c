//! A guard without a classifier: it could not tell an outage from a bug.

use evenkeel::Engine;

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


fn main() {
    let guard = Engine::system()
        .read::<u32>("g")
        .scope::<(Tenant, Locale)>()
        .build()
        .unwrap();
    drop(guard.call((Tenant("acme"), Locale("de")), "k", |_| async { Ok(1) }));
}
