//! A scope that is a bare newtype instead of a tuple of one.

use evenkeel::{Class, Engine};

struct Tenant(&'static str);

impl AsRef<str> for Tenant {
    fn as_ref(&self) -> &str {
        self.0
    }
}

#[derive(Clone)]
struct Down;

fn main() {
    let guard = Engine::system()
        .read::<u32>("g")
        .scope::<Tenant>()
        .classify(|_: &Down| Class::OUTAGE)
        .coalesce()
        .build()
        .unwrap();
    drop(guard.call(Tenant("acme"), "k", |_| async { Ok(1) }));
}
