//! Decides how requests are answered: hyper on both sides, a guard of the library between them.
//! It exists so that the gateway stays thin: HTTP in, a call through a guard, HTTP out.
//! It refuses to have a breaker, a limit, an age or a ladder of its own.

mod alternate;
mod app;
mod authority;
mod buffers;
mod cached;
mod caching;
mod current;
mod exchange;
mod forward;
mod framing;
mod given;
mod handle;
mod health;
mod keep;
mod labels;
mod limits;
mod link;
mod looked;
mod oldest;
mod outbound;
mod pass;
mod passing;
mod patient;
mod peer;
mod place;
mod process;
mod ready;
mod refuse;
mod repeat;
mod respond;
mod retiring;
mod rewrite;
mod route;
mod router;
mod seat;
mod served;
mod server;
mod shelving;
mod store;
mod stream;
mod trouble;
mod upload;
mod upstream;
mod watched;
mod whole;

pub use app::App;
pub use labels::NAME;
pub use limits::{FIELDS_MAX, Limits};
pub use link::RESPONSE_HEAD_MAX;
pub use place::{IDLE_MAX, SWEEP_EVERY};
pub use refuse::RETRY_AFTER_DEFAULT;
pub use upload::{LINGER, LINGER_BYTES};
pub use upstream::UNREACHED_MAX;

pub(crate) use authority::of_request;
pub(crate) use current::Current;
pub(crate) use keep::Why;
pub(crate) use passing::Passing;
pub(crate) use process::Process;
pub(crate) use route::{Route, Validated};
pub(crate) use seat::CameTo as AddressCameTo;
pub(crate) use server::{Connections, Stop, serve, serve_with};
pub(crate) use store::DROPPED;
