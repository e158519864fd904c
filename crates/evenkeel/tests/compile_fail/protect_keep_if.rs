//! A door that keeps some of its decisions.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .keep_if(|_| true)
        .build();
    drop(door);
}
