//! Decides what a client is told when nobody can answer: which problem, which status, when to come back.
//! It exists so that every refusal of the gateway has the same shape and the status follows from the first cause.
//! It refuses to invite a retry before it can help, and to say 0.

use std::time::Duration;

use bytes::Bytes;
use evenkeel::{Reason, Unanswered, http::problem_kind};
use evenkeel_http::{
    problem::{Problem, ProblemKind, SkippedRung},
    proxy_status::{ProxyError, ProxyStatus},
};
use http::{Response, StatusCode};

use super::{labels, outbound::Outbound, trouble::Trouble};

/// What a client is told to wait where no instant is known: the end of most small incidents.
pub const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(5);

/// Answers a request that the gateway itself cannot take.
pub(super) fn misdirected(kind: ProblemKind, detail: Option<&str>) -> Response<Outbound> {
    let problem = Problem {
        detail,
        ..Problem::new(kind)
    };
    let mut response = of_problem(&problem);
    let status = ProxyStatus {
        proxy: labels::NAME,
        error: Some(ProxyError::HttpRequestError),
        received_status: None,
    };
    status.append_to(response.headers_mut());
    response
}

/// Answers a request that wants nothing but what is kept, when nothing usable is.
pub(super) fn nothing_kept() -> Response<Outbound> {
    of_problem(&Problem::new(ProblemKind::NothingKept))
}

/// Answers `OPTIONS` for the gateway itself: there is nothing to say, and nobody to ask.
pub(super) fn options() -> Response<Outbound> {
    let mut response = Response::new(Outbound::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Clients that were refused together are told this many different waits.
const STEPS: u32 = 8;
/// The least spread of these waits: they are told in whole seconds.
const SPREAD_MIN: Duration = Duration::from_secs(2);

/// Spreads a wait over a quarter of it, in steps taken in turn: who was refused together does not come back
/// together (rule H04). Never shorter than the wait itself.
fn spread(wait: Duration, turn: u32) -> Duration {
    let room = (wait / 4).max(SPREAD_MIN);
    wait.saturating_add(room / STEPS * (turn % STEPS))
}

/// Answers a call that no rung could answer. `turn` numbers those that are told when to come back.
pub(super) fn unanswered(
    end: &Unanswered<Trouble>,
    connected: bool,
    turn: impl FnOnce() -> u32,
) -> Response<Outbound> {
    unanswered_with(end, None, connected, turn)
}

/// The same, with what is known of this request.
pub(super) fn unanswered_with(
    end: &Unanswered<Trouble>,
    detail: Option<&str>,
    connected: bool,
    turn: impl FnOnce() -> u32,
) -> Response<Outbound> {
    let kind = problem_kind(end.reason);
    let skipped: Vec<SkippedRung<'_>> = end
        .skipped
        .iter()
        .map(|(rung, why)| SkippedRung {
            rung: rung.as_str(),
            why: why.as_str(),
        })
        .collect();
    let problem = Problem {
        detail,
        reason: end.reason.map(Reason::as_str),
        skipped: &skipped,
        retry_after: kind
            .has_retry_after()
            .then(|| spread(end.retry_after.unwrap_or(RETRY_AFTER_DEFAULT), turn())),
        ..Problem::new(kind)
    };
    let mut response = of_problem(&problem);
    labels::failure(response.headers_mut(), end.reason, end.cause.as_ref(), connected);
    response
}

fn of_problem(problem: &Problem<'_>) -> Response<Outbound> {
    // A line of its own in a terminal and in a log.
    let body = problem.to_json() + "\n";
    let mut response = Response::new(Outbound::bytes(Bytes::from(body), None));
    *response.status_mut() = problem.status();
    problem.set_headers(response.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_http::delays::retry_after_seconds;

    #[test]
    fn the_status_follows_from_the_first_cause() {
        let status = |reason| problem_kind(reason).status().as_u16();
        let expected = [
            502, 504, 502, 502, 502, 500, 503, 503, 503, 503, 503, 503, 503, 503, 500, 500, 503,
        ];
        assert_eq!(Reason::ALL.map(|reason| status(Some(reason))), expected);
        assert_eq!(status(None), 500);
    }

    #[test]
    fn h04_clients_refused_together_are_told_to_come_back_apart_and_none_too_early() {
        let told = |wait: Duration| -> Vec<u64> {
            (0..STEPS)
                .map(|turn| retry_after_seconds(spread(wait, turn)))
                .collect()
        };
        assert_eq!(told(Duration::from_millis(900)), [1, 2, 2, 2, 2, 3, 3, 3]);
        assert_eq!(told(RETRY_AFTER_DEFAULT), [5, 6, 6, 6, 6, 7, 7, 7]);
        let hour = Duration::from_secs(3600);
        assert_eq!(told(hour).first(), Some(&3600));
        assert_eq!(told(hour).last(), Some(&(3600 + 900 / 8 * 7 + 4)));
        assert_eq!(spread(Duration::MAX, u32::MAX), Duration::MAX);
    }

    #[test]
    fn h04_every_503_says_when_to_come_back_and_never_at_once() {
        for reason in Reason::ALL {
            for wait in [None, Some(Duration::ZERO), Some(Duration::from_millis(1_600))] {
                let end = Unanswered {
                    ending: evenkeel::Ending::Refused,
                    reason: Some(reason),
                    skipped: evenkeel::Skips::default(),
                    retry_after: wait,
                    cause: None,
                    alternate_cause: None,
                    misuse: None,
                };
                let response = unanswered(&end, true, || 0);
                let said = response
                    .headers()
                    .get("retry-after")
                    .map(|value| value.to_str().unwrap());
                let expected = match wait {
                    None => "5",
                    Some(wait) if wait.is_zero() => "1",
                    Some(_) => "2",
                };
                let is_503 = response.status() == 503;
                assert_eq!(said, is_503.then_some(expected), "{reason}");
            }
        }
    }
}
