//! A door with a store for decisions.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .memory(&evenkeel::Memory::new(1 << 20))
        .build();
    drop(door);
}
