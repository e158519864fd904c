//! Decides what reqwest's errors say about the dependency.
//! It exists because reqwest names the step that failed, and only the cause says whose failure it was.
//! It refuses to call an answer that came whole an outage because it could not be read as agreed.

use evenkeel_core::{Class, Outage};

use super::hyper::hyper_within;

/// Classifies an error of reqwest. The first row that fits holds:
///
/// | error | class | why |
/// |---|---|---|
/// | `is_builder`, `is_upgrade` | fault | the request was never made |
/// | `is_redirect` | fault | the dependency answered, and a rule of this program does not follow: one of them is wrong |
/// | `is_status`, from `error_for_status` | as [`Class::of_status`] | a status that is no error is a fault |
/// | `is_timeout` | outage, timed out | |
/// | `is_connect` | outage, failed | refused, name not found, TLS |
/// | caused by an error of hyper's or an I/O error | as [`hyper_within`](super::hyper_within) | cut, reset, not HTTP; a request body that broke is a fault |
/// | all others, `is_decode` and `is_body` among them | fault | the answer came whole and is not what was agreed |
///
/// A body that ends early is a cut also where reqwest says `is_decode`, because its cause says so.
///
/// reqwest returns HTTP errors as values; call `error_for_status` where they are to use the ladder:
///
/// ```
/// use evenkeel::{Engine, classify, stale};
/// use std::time::Duration;
///
/// # async fn example(client: reqwest::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let stock = Engine::system()
///     .read::<String>("stock")
///     .timeout(Duration::from_millis(250))
///     .classify(classify::reqwest)
///     .ladder([stale(Duration::from_secs(60))])
///     .build()?;
/// let answer = stock
///     .call((), "42", |call| async move {
///         let request = client.get("http://stock.internal/42").timeout(call.remaining());
///         request.send().await?.error_for_status()?.text().await
///     })
///     .await?;
/// # Ok(()) }
/// ```
#[must_use]
pub fn reqwest(error: &::reqwest::Error) -> Class {
    if error.is_builder() || error.is_upgrade() || error.is_redirect() {
        return Class::Fault;
    }
    if let Some(status) = error.status() {
        return match Class::of_status(status.as_u16()) {
            Class::Answer => Class::Fault,
            class @ (Class::Outage(_)
            | Class::Refusal
            | Class::Gone
            | Class::Busy
            | Class::Fault
            | Class::Local
            | Class::Cancelled) => class,
        };
    }
    if error.is_timeout() {
        return Class::Outage(Outage::TimedOut);
    }
    if error.is_connect() {
        return Class::OUTAGE;
    }
    hyper_within(error).unwrap_or(Class::Fault)
}
