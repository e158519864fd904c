//! A door without a classifier: it could not tell an outage of its authority from a bug.

use evenkeel::{Engine, Protect, Problems};

fn main() {
    let door: Result<Protect<u32, (), std::fmt::Error>, Problems> = Engine::system().protect("sso").build();
    drop(door);
}
