//! A door with a ladder: what stood in would not be a decision about this call.

use evenkeel::{Class, Engine};

fn main() {
    let door = Engine::system()
        .protect::<u32, ()>("sso")
        .classify(|_: &std::fmt::Error| Class::OUTAGE)
        .ladder([evenkeel::stale(std::time::Duration::from_secs(1))])
        .build();
    drop(door);
}
