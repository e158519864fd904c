//! Decides what an operator is shown of the store on disk: whether it is up, else since when not, why, and what to do.
//! It exists because a gateway without its store looks well until it starts anew.
//! It refuses to name what is in it: that is for `evenkeel snapshots`.

use evenkeel::Now;
use serde_json::{Value, json};

use crate::{
    proxy::{Process, STORE_BEHIND},
    telemetry::rfc3339,
};

/// Shows the store; null where the contract has none.
pub(super) fn shown(process: &Process, now: Now) -> Value {
    let Some(store) = process.store.get() else {
        return Value::Null;
    };
    let stats = store.stats();
    let waits = store.backlog_age(&stats);
    let is_behind = waits > STORE_BEHIND;
    let mut shown = json!({
        "up": true,
        "behind": is_behind,
        "entries": stats.entries,
        "bytes": stats.bytes,
        "bytes_limit": store.bytes_limit(),
        "backlog_entries": stats.backlog,
        "backlog_bytes": stats.backlog_bytes,
        "backlog_seconds": waits.as_secs_f64(),
    });
    if let Some(down) = store.is_down() {
        shown["up"] = false.into();
        shown["reason"] = down.why.into();
        shown["detail"] = down.detail.into();
        shown["since"] = rfc3339(now.wall_of(down.since)).into();
        shown["for_seconds"] = now.mono.since(down.since).as_secs().into();
        shown["to_do"] = to_do(down.why).into();
    } else if is_behind {
        let since = now.mono.before(waits);
        shown["since"] = rfc3339(now.wall_of(since)).into();
        shown["for_seconds"] = waits.as_secs().into();
        shown["to_do"] = "see how busy its disk is; what waits would be lost in a crash".into();
    }
    shown
}

/// Says what helps against a reason.
fn to_do(why: &str) -> &'static str {
    match why {
        "opening" => "nothing: the file is being opened",
        "in-use" => {
            "end the other gateway or tool that has the file, or name another directory; it is taken over by itself"
        }
        "foreign" => "name another directory as store.path",
        "damaged" => "nothing: the file is put aside and a new one begins; look after the disk",
        "full" => "make room on its disk, or lower store.max",
        _ => "see that the directory is there and that the gateway may write to it",
    }
}

#[cfg(test)]
mod tests {
    use super::to_do;

    #[test]
    fn every_reason_has_something_to_do() {
        let all = ["opening", "in-use", "foreign", "damaged", "full", "unreachable"];
        for (place, why) in all.iter().enumerate() {
            let others = all.iter().skip(place + 1);
            assert!(
                others.map(|other| to_do(other)).all(|other| other != to_do(why)),
                "{why}"
            );
        }
    }
}
