//! A door whose callers share a decision: each has to be decided about by itself.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .coalesce()
        .build();
    drop(door);
}
