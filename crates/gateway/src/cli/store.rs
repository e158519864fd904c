//! Decides how the store on disk looks on the screen.
//! It exists so that who looks at a gateway at night sees that it would start with nothing.
//! It refuses a line for a store that is well.

use serde_json::Value;

use super::screen::{clock, span};

/// Shows the store of `status` where it is down or its disk does not keep up.
pub(super) fn line(status: &Value) -> Option<String> {
    let store = &status["store"];
    let is_down = store["up"] == false;
    if !is_down && store["behind"] != true {
        return None;
    }
    let text = |key: &str| store[key].as_str().unwrap_or_default();
    let whole = |key: &str| store[key].as_u64().unwrap_or_default();
    let what = if is_down {
        let detail = match text("detail") {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        format!("down: {}{detail}, copies are in memory alone", text("reason"))
    } else {
        format!("behind: {} changes wait to be written", whole("backlog_entries"))
    };
    Some(format!(
        " STORE     {what}  since {} ({})  {}",
        clock(text("since")),
        span(whole("for_seconds")),
        text("to_do")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_store_that_is_down_or_behind_has_a_line_with_since_when_why_and_what_to_do() {
        let down = json!({ "store": {
            "up": false, "behind": false, "reason": "full", "detail": "database or disk is full",
            "since": "2026-11-29T03:02:07.000Z", "for_seconds": 360, "to_do": "make room on its disk, or lower store.max",
        } });
        assert_eq!(
            line(&down).as_deref(),
            Some(
                " STORE     down: full (database or disk is full), copies are in memory alone  since 03:02 UTC (6 min)  \
                 make room on its disk, or lower store.max"
            )
        );
        let behind = json!({ "store": {
            "up": true, "behind": true, "backlog_entries": 812, "since": "2026-11-29T03:02:07.000Z", "for_seconds": 12,
            "to_do": "see how busy its disk is",
        } });
        assert_eq!(
            line(&behind).as_deref(),
            Some(
                " STORE     behind: 812 changes wait to be written  since 03:02 UTC (12 s)  see how busy its disk is"
            )
        );
        for well in [
            json!({ "store": { "up": true, "behind": false } }),
            json!({ "store": null }),
            json!({}),
        ] {
            assert_eq!(line(&well), None, "{well}");
        }
    }
}
