//! A door with a default: it would be open or shut for everybody.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .default(|| 1)
        .build();
    drop(door);
}
