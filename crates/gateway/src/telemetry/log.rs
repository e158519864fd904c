//! Decides how the gateway writes its log: one line per event, fields instead of prose, to standard error.
//! It exists as one function, because a log of starts, stops and changes of state needs no framework.
//! It refuses a line per request: that is what counters and labels are for.

use std::io::{self, Write as _};

use evenkeel::{Event, EventKind};

/// Writes one line: `event=<word> key=value ...`.
pub fn line(event: &str, fields: &[(&str, &str)]) {
    let text = formatted(event, fields);
    // A log that cannot be written must not stop traffic.
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// Writes the line of an event of the engine.
pub fn event(event: &Event) {
    let (word, fields) = described(event);
    let fields: Vec<(&str, &str)> = fields.iter().map(|(key, value)| (*key, value.as_str())).collect();
    line(word, &fields);
}

fn described(event: &Event) -> (&'static str, Vec<(&'static str, String)>) {
    let mut fields = vec![
        ("name", event.name.to_string()),
        ("at", event.at.as_secs().to_string()),
    ];
    let word = match &event.kind {
        EventKind::Breaker(transition) => {
            fields.push(("from", transition.from.as_str().to_owned()));
            fields.push(("to", transition.to.as_str().to_owned()));
            fields.push(("cause", transition.cause.as_str().to_owned()));
            "breaker"
        }
        EventKind::Held { mode, by, why, lasts } => {
            fields.push(("mode", mode.as_str().to_owned()));
            fields.push(("by", by.clone()));
            fields.push(("why", why.clone()));
            let lasts = lasts.map_or_else(
                || "until-released".to_owned(),
                crate::config::units::show_duration,
            );
            fields.push(("lasts", lasts));
            "held"
        }
        EventKind::Released { mode, by } => {
            fields.push(("mode", mode.as_str().to_owned()));
            fields.push(("by", by.clone().unwrap_or_else(|| "expiry".to_owned())));
            "released"
        }
        EventKind::Reset { by, why } => {
            fields.push(("by", by.clone()));
            fields.push(("why", why.clone()));
            "reset"
        }
    };
    (word, fields)
}

/// Values that are not plain words are quoted, so that nobody can write a line of their own into the log.
fn formatted(event: &str, fields: &[(&str, &str)]) -> String {
    let mut text = format!("event={event}");
    for (key, value) in fields {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        text.push(' ');
        text.push_str(key);
        text.push('=');
        if !value.is_empty() && value.chars().all(plain) {
            text.push_str(value);
        } else {
            text.push('"');
            text.extend(value.escape_debug());
            text.push('"');
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_write_a_line_of_its_own() {
        assert_eq!(
            formatted("x", &[("a", "b-1"), ("c", "d\nevent=y"), ("e", "")]),
            "event=x a=b-1 c=\"d\\nevent=y\" e=\"\"\n"
        );
    }
}
