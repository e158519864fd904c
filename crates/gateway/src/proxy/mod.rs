//! Decides how requests are answered: hyper on both sides, a guard of the library between them.
//! It exists so that the gateway stays thin: HTTP in, a call through a guard, HTTP out.
//! It refuses to have a breaker, a limit, an age or a ladder of its own.

mod alternate;
mod app;
mod arrive;
mod authority;
mod buffers;
mod cached;
mod caching;
mod current;
mod exchange;
mod forward;
mod framing;
mod gate;
mod given;
mod handle;
mod health;
mod identity;
mod keep;
mod labels;
mod limits;
mod link;
mod outbound;
mod pass;
mod passing;
mod patient;
mod peer;
mod pieces;
mod process;
mod protect;
mod ready;
mod refuse;
mod repeat;
mod respond;
mod retiring;
mod rewrite;
mod route;
mod router;
mod served;
mod server;
mod shelving;
mod since;
mod stream;
mod trouble;
mod upload;
mod upstream;
mod void;
mod watched;
mod whole;

pub use app::App;
pub use identity::IDENTITY_MAX;
pub use labels::NAME;
pub use limits::{FIELDS_MAX, Limits};
pub use link::RESPONSE_HEAD_MAX;
pub use protect::DENIAL_MAX;
pub use refuse::RETRY_AFTER_DEFAULT;
pub use upload::{LINGER, LINGER_BYTES};
pub use upstream::{IDLE_MAX, SWEEP_EVERY};

pub(crate) use authority::of_request;
pub(crate) use current::Current;
pub(crate) use keep::Why;
pub(crate) use process::Process;
pub(crate) use route::{Route, Validated};
pub(crate) use server::{Connections, Stop, serve, serve_with};
