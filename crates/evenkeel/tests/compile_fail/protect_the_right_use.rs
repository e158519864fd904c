//! The use that the other cases of a door get wrong in one place each, so that they fail for that and nothing else.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .timeout(std::time::Duration::from_secs(1))
        .build();
    drop(door);
}
