//! A door that answers before its authority has.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .soft_timeout(std::time::Duration::from_secs(1))
        .build();
    drop(door);
}
