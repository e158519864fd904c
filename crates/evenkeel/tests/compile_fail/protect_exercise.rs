//! A door whose stand-ins are tried: there are none.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .exercise(1)
        .build();
    drop(door);
}
