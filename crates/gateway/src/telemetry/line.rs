//! Decides how one line of the log is written: its time, how much it matters, what happened, then fields.
//! It exists so that every line can be read by people and by programs, in order of time, without a configuration.
//! It refuses values that would end a line or look like another field: they are quoted.

use std::fmt::Write as _;

use evenkeel::Wall;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What is to be expected: starts, stops, recoveries.
    Info,
    /// Users get less than they should.
    Warn,
    /// The gateway itself cannot do its work.
    Error,
}

impl Level {
    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it happened.
    pub at: Wall,
    /// How much it matters.
    pub level: Level,
    /// What happened, in one word.
    pub event: &'static str,
    /// The rest, in order.
    pub fields: Vec<(&'static str, String)>,
}

impl Line {
    /// Writes it: `time=<RFC 3339> level=<word> event=<word> key=value ...`, ended by a newline.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "time={} level={} event={}",
            rfc3339(self.at),
            self.level.as_str(),
            self.event
        );
        for (key, value) in &self.fields {
            let plain =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '[' | ']');
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
}

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Writes an instant as RFC 3339 has it, in UTC and to the millisecond.
pub(crate) fn rfc3339(at: Wall) -> String {
    let millis = at.as_nanos().div_euclid(1_000_000);
    let (year, month, day) = civil(millis.div_euclid(MILLIS_PER_DAY));
    let of_day = millis.rem_euclid(MILLIS_PER_DAY);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, millis) = (of_day / 1_000 % 60, of_day % 1_000);
    let mut text = String::with_capacity(24);
    // Writing to a `String` cannot fail.
    write!(
        text,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
    )
    .unwrap_or_default();
    text
}

/// Reads an instant as RFC 3339 has it, in UTC or with an offset, or as `@` and seconds of Unix time. Parts of a second are
/// dropped, so that nothing becomes younger.
pub(crate) fn unix_seconds(text: &str) -> Option<u64> {
    if let Some(seconds) = text.strip_prefix('@') {
        return seconds.parse().ok();
    }
    let (date, rest) = text.split_once(['T', 't'])?;
    let (time, offset) = match rest.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => {
            let (time, offset) = rest.split_at_checked(rest.len().checked_sub(6)?)?;
            let sign = if offset.starts_with('-') { -1 } else { 1 };
            let (hours, minutes) = offset.strip_prefix(['+', '-'])?.split_once(':')?;
            (time, sign * (number(hours, 23)? * 60 + number(minutes, 59)?))
        }
    };
    let mut date = date.splitn(3, '-');
    let wanted = (
        number(date.next()?, 9999)?,
        number(date.next()?, 12)?,
        number(date.next()?, 31)?,
    );
    let (time, _) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.splitn(3, ':');
    let (hour, minute, second) = (
        number(time.next()?, 23)?,
        number(time.next()?, 59)?,
        number(time.next()?, 60)?,
    );
    // The day is sought: they follow one another, and a year has 365 or 366.
    let near = (wanted.0 - 1970) * 365 + (wanted.0 - 1970) / 4 + (wanted.1 - 1) * 30;
    let day = (near - 40..near + 40).find(|day| civil(*day) == wanted)?;
    let of_day = hour * 3600 + minute * 60 + second;
    u64::try_from(day * 86_400 + of_day - offset * 60).ok()
}

/// Reads digits alone.
fn number(text: &str, most: i64) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number)?;
    (number <= most).then_some(number)
}

/// Returns year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is the last of its year; 400 of them repeat.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_write_a_line_of_its_own() {
        let line = Line {
            at: Wall::from_nanos(0),
            level: Level::Warn,
            event: "x",
            fields: vec![
                ("a", "b-1".to_owned()),
                ("c", "d\nevent=y".to_owned()),
                ("e", String::new()),
            ],
        };
        assert_eq!(
            line.to_text(),
            "time=1970-01-01T00:00:00.000Z level=warn event=x a=b-1 c=\"d\\nevent=y\" e=\"\"\n"
        );
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (millis, text) in [
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59.000Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Wall::from_nanos(millis * 1_000_000)), text);
        }
    }

    #[test]
    fn an_instant_that_is_written_is_read_again() {
        for seconds in [0_i64, 951_782_400, 1_709_164_800, 1_795_921_327, 4_102_444_799] {
            let text = rfc3339(Wall::from_nanos(seconds * 1_000_000_000));
            assert_eq!(unix_seconds(&text), u64::try_from(seconds).ok(), "{text}");
        }
        assert_eq!(unix_seconds("@17"), Some(17));
        assert_eq!(unix_seconds("1970-01-01T02:00:00+02:00"), Some(0));
        for wrong in [
            "",
            "now",
            "2026-11-29",
            "2026-02-30T00:00:00Z",
            "@",
            "@-1",
            "2026-11-29T03:02:07",
        ] {
            assert_eq!(unix_seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = civil(-800_000);
        for day in -799_999..800_000 {
            let (year, month, of_month) = civil(day);
            let next = (year, month, of_month) == (before.0, before.1, before.2 + 1)
                || (year, month, of_month) == (before.0, before.1 + 1, 1)
                || (year, month, of_month) == (before.0 + 1, 1, 1) && before.1 == 12;
            assert!(next && (1..=31).contains(&of_month), "{before:?} {day}");
            before = (year, month, of_month);
        }
        assert_eq!(civil(0), (1970, 1, 1));
    }
}
