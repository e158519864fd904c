//! A door with a second authority.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .alternate(&())
        .build();
    drop(door);
}
