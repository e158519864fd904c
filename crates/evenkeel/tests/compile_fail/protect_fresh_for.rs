//! A door that keeps its decisions.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .fresh_for(std::time::Duration::from_secs(1))
        .build();
    drop(door);
}
