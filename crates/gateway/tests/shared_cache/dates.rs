//! Fills the placeholders of a script: its path, its authority, and dates in the three forms of RFC 9110 §5.6.7.
//! The dates are written here once more, so that the proof does not lean on the code it proves.
//! It reads no dates: what a proxy sends is compared as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// What the placeholders of one run stand for.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) path: String,
    pub(crate) authority: String,
    /// When the run began, in seconds of Unix time.
    pub(crate) start: i64,
}

/// The seconds of Unix time.
#[expect(
    clippy::disallowed_methods,
    reason = "an origin outside the gateway has a clock of its own"
)]
pub(crate) fn unix_now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock after 1970");
    i64::try_from(since.as_secs()).expect("a clock before the end of time")
}

impl Names {
    /// Replaces every `{path}`, `{authority}`, `{base}`, `{long}`, `{now-60}` and `{start+60 rfc850}`.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                filled.push('{');
                rest = after;
                continue;
            };
            match self.value(name) {
                Some(value) => filled.push_str(&value),
                None => filled.push_str(&format!("{{{name}}}")),
            }
            rest = behind;
        }
        filled + rest
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "path" => return Some(self.path.clone()),
            "authority" => return Some(self.authority.clone()),
            "base" => return Some(format!("http://{}{}", self.authority, self.path)),
            "long" => return Some("x".repeat(6000)),
            _ => {}
        }
        let (base, rest) = match (name.strip_prefix("now"), name.strip_prefix("start")) {
            (Some(rest), _) => (unix_now(), rest),
            (None, Some(rest)) => (self.start, rest),
            (None, None) => return None,
        };
        let (offset, form) = rest.split_once(' ').unwrap_or((rest, "imf"));
        let offset: i64 = if offset.is_empty() {
            0
        } else {
            offset.parse().ok()?
        };
        date(base + offset, form)
    }
}

/// Formats seconds of Unix time as `imf`, `rfc850` or `asctime`.
fn date(unix: i64, form: &str) -> Option<String> {
    const DAYS: [&str; 7] = [
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "Monday",
        "Tuesday",
        "Wednesday",
    ];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, second) = (unix.div_euclid(86_400), unix.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).ok()?];
    let month = MONTHS[usize::try_from(month - 1).ok()?];
    let short = weekday.get(..3)?;
    let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    match form {
        "imf" => Some(format!("{short}, {day:02} {month} {year:04} {time} GMT")),
        "rfc850" => Some(format!(
            "{weekday}, {day:02}-{month}-{:02} {time} GMT",
            year % 100
        )),
        "asctime" => Some(format!("{short} {month} {day:2} {time} {year:04}")),
        _ => None,
    }
}

/// The year, month and day of a count of days since 1970, by the rules of the Gregorian calendar.
fn civil(mut days: i64) -> (i64, i64, i64) {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[test]
fn the_three_forms_of_the_date_in_the_rfc_are_written() {
    let names = Names {
        path: "/p".to_owned(),
        authority: "h".to_owned(),
        start: 784_111_777,
    };
    assert_eq!(names.fill("{start}"), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(names.fill("{start rfc850}"), "Sunday, 06-Nov-94 08:49:37 GMT");
    assert_eq!(names.fill("{start asctime}"), "Sun Nov  6 08:49:37 1994");
    assert_eq!(
        names.fill("{start-1} {base} {x} {"),
        "Sun, 06 Nov 1994 08:49:36 GMT http://h/p {x} {"
    );
}
