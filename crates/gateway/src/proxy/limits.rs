//! Decides how much a client or an upstream may ask of the gateway before it is cut off.
//! It exists so that every limit that is not in the contract is a number in one place, with its reason.
//! It refuses to be unlimited anywhere.

use std::time::Duration;

/// The most fields of one head, of requests and of answers: hyper keeps this many without allocating.
pub const FIELDS_MAX: usize = 100;

/// The limits that contracts do not set. A test may lower them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of clients at once; more wait in the system's queue until one ends.
    pub connections: usize,
    /// The time for one request head, and for the pause between two requests on one connection.
    pub head_read: Duration,
    /// Bytes of one request head: more is answered 431. So is a head of more than [`FIELDS_MAX`] fields.
    pub head_bytes: usize,
    /// The longest that a client may take nothing of what is ready for it; then its connection is closed, and with it
    /// the attempt whose body it did not read.
    pub client_idle: Duration,
    /// The longest pause inside a body that is being streamed; then it is cut.
    pub stream_idle: Duration,
    /// The longest that a client is waited for inside the body of its request; then it is answered 408.
    pub upload_idle: Duration,
    /// The longest for the whole body of a request, from the first wait for its client: a client that sends a byte now
    /// and then would otherwise hold a permit for ever.
    pub upload: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head_read: Duration::from_secs(30),
            head_bytes: 32 << 10,
            client_idle: Duration::from_secs(60),
            stream_idle: Duration::from_secs(60),
            upload_idle: Duration::from_secs(30),
            upload: Duration::from_secs(600),
        }
    }
}
