//! A door that remembers: a decision of before is none about now.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .stale(std::time::Duration::from_secs(1))
        .build();
    drop(door);
}
