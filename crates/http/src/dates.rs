//! Decides which instant an HTTP date names, in any of its three forms, and writes the one form that may be
//! sent.
//! It exists because ages are decided on these values: a date read wrongly makes old data look young.
//! It refuses to read a clock; where "now" matters the caller passes it in.

use std::fmt;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};

const SECONDS_PER_DAY: i64 = 86_400;
const MIN_SECONDS: i64 = -62_167_219_200; // 0000-01-01T00:00:00Z
const MAX_SECONDS: i64 = 253_402_300_799; // 9999-12-31T23:59:59Z
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// An instant as HTTP can write it: whole seconds since 1970-01-01T00:00:00Z, in the years 0000 to 9999.
///
/// ```
/// use evenkeel_http::dates::HttpDate;
///
/// let now = HttpDate::from_unix_seconds(1_764_440_643);
/// let date = HttpDate::parse(b"Sun, 06 Nov 1994 08:49:37 GMT", now).unwrap();
/// assert_eq!(date.unix_seconds(), 784_111_777);
/// assert_eq!(date.to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpDate(i64);

impl HttpDate {
    /// Makes a date from seconds since the Unix epoch; values outside the years 0000 to 9999 become the
    /// nearest end.
    #[must_use]
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        if seconds < MIN_SECONDS {
            Self(MIN_SECONDS)
        } else if seconds > MAX_SECONDS {
            Self(MAX_SECONDS)
        } else {
            Self(seconds)
        }
    }

    /// Returns the seconds since the Unix epoch; negative before 1970.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        let seconds = self.0.saturating_sub(earlier.0);
        Duration::from_secs(if seconds > 0 { seconds.unsigned_abs() } else { 0 })
    }

    /// Reads any of the three forms of RFC 9110 §5.6.7; `None` for everything else.
    ///
    /// Names are matched without regard to case, as RFC 9111 §4.2 asks of caches. The zone may be `GMT` or
    /// `UTC`: a `Date` that counts as missing would make its answer look younger. Where a date makes something
    /// fresh, ask for [`Self::parse_expiration`]. The day of the week must be a day's name; whether it fits the date is not checked, because a
    /// `Date` that counts as missing would make its answer look younger. `now` settles the century of the
    /// two-digit form: the latest year that is not more than 50 years ahead.
    #[must_use]
    pub fn parse(value: &[u8], now: Self) -> Option<Self> {
        let seconds = Self::parse_fixed(value)
            .or_else(|| Self::parse_two_digit_year(value, now))
            .or_else(|| Self::parse_asctime(value))?;
        Some(Self(seconds))
    }

    /// Reads a date that a lifetime is worked out from: as [`Self::parse`], but only `GMT` is a zone (RFC 9111
    /// §4.2).
    #[must_use]
    pub fn parse_expiration(value: &[u8], now: Self) -> Option<Self> {
        let zone = value.get(value.len().saturating_sub(3)..)?;
        Self::parse(value, now).filter(|_| !zone.eq_ignore_ascii_case(b"UTC"))
    }

    /// Reads the first line of a date field (`Date`, `Last-Modified`, `Expires`); `None` if absent or not a
    /// date.
    #[must_use]
    pub fn from_field(headers: &HeaderMap, name: &HeaderName, now: Self) -> Option<Self> {
        headers
            .get(name)
            .and_then(|value| Self::parse(value.as_bytes(), now))
    }

    /// Writes the date in the one form that may be sent (IMF-fixdate).
    #[must_use]
    pub fn to_value(self) -> HeaderValue {
        HeaderValue::try_from(self.to_string()).expect("a date is letters, digits, commas, colons and spaces")
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    fn parse_fixed(value: &[u8]) -> Option<i64> {
        let mut text = Text(value);
        text.day_name(|name| name.get(..3))?;
        text.literal(b", ")?;
        let day = text.digits(2)?;
        text.literal(b" ")?;
        let month = text.month()?;
        text.literal(b" ")?;
        let year = text.digits(4)?;
        text.literal(b" ")?;
        let time = text.time_of_day()?;
        text.zone_and_end()?;
        seconds_from(year, month, day, time)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    fn parse_two_digit_year(value: &[u8], now: Self) -> Option<i64> {
        let mut text = Text(value);
        text.day_name(Some)?;
        text.literal(b", ")?;
        let day = text.digits(2)?;
        text.literal(b"-")?;
        let month = text.month()?;
        text.literal(b"-")?;
        let two_digits = text.digits(2)?;
        text.literal(b" ")?;
        let time = text.time_of_day()?;
        text.zone_and_end()?;
        let (this_year, _, _) = civil_from_days(now.0.div_euclid(SECONDS_PER_DAY));
        let latest = this_year + 50;
        let year = latest - (latest - two_digits).rem_euclid(100);
        seconds_from(year, month, day, time)
    }

    /// `Sun Nov  6 08:49:37 1994`
    fn parse_asctime(value: &[u8]) -> Option<i64> {
        let mut text = Text(value);
        text.day_name(|name| name.get(..3))?;
        text.literal(b" ")?;
        let month = text.month()?;
        text.literal(b" ")?;
        let day = if text.literal(b" ").is_some() {
            text.digits(1)?
        } else {
            text.digits(2)?
        };
        text.literal(b" ")?;
        let time = text.time_of_day()?;
        text.literal(b" ")?;
        let year = text.digits(4)?;
        text.end()?;
        seconds_from(year, month, day, time)
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.div_euclid(SECONDS_PER_DAY);
        let second = self.0.rem_euclid(SECONDS_PER_DAY);
        let (year, month, day) = civil_from_days(days);
        // 1970-01-01 was a Thursday, the fifth name.
        let week_day = name_at(&DAYS, (days + 4).rem_euclid(7))
            .get(..3)
            .unwrap_or_default();
        let month = name_at(&MONTHS, month - 1);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(
            f,
            "{week_day}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
        )
    }
}

/// What is left to read of a date.
struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn literal(&mut self, wanted: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(wanted)?;
        Some(())
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        self.take(count)?.iter().try_fold(0, |sum, byte| {
            byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'))
        })
    }

    /// Takes the name of any day, in the length that `form` gives it.
    fn day_name(&mut self, form: impl Fn(&'static str) -> Option<&'static str>) -> Option<()> {
        let name = DAYS
            .iter()
            .filter_map(|name| form(name))
            .find(|name| self.starts_with(name))?;
        self.take(name.len()).map(drop)
    }

    /// Takes a month's name and returns its number, 1 to 12.
    fn month(&mut self) -> Option<i64> {
        let (number, name) = (1..).zip(MONTHS).find(|(_, name)| self.starts_with(name))?;
        self.take(name.len())?;
        Some(number)
    }

    fn starts_with(&self, name: &str) -> bool {
        self.0
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Takes `hh:mm:ss` and returns seconds since midnight. A leap second (`:60`) is the first second of the
    /// next minute.
    fn time_of_day(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.literal(b":")?;
        let minute = self.digits(2)?;
        self.literal(b":")?;
        let second = self.digits(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
    }

    fn zone_and_end(&mut self) -> Option<()> {
        self.literal(b" ")?;
        let zone = self.take(3)?;
        (zone.eq_ignore_ascii_case(b"GMT") || zone.eq_ignore_ascii_case(b"UTC")).then_some(())?;
        self.end()
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

fn name_at<const N: usize>(names: &'static [&'static str; N], at: i64) -> &'static str {
    usize::try_from(at)
        .ok()
        .and_then(|at| names.get(at))
        .copied()
        .unwrap_or_default()
}

/// Returns the seconds since the epoch, or `None` if the month has no such day.
fn seconds_from(year: i64, month: i64, day: i64, second_of_day: i64) -> Option<i64> {
    let days = days_from_civil(year, month, day);
    // A day the month does not have comes back as a day of the next one.
    (civil_from_days(days) == (year, month, day))
        .then(|| (days * SECONDS_PER_DAY + second_of_day).clamp(MIN_SECONDS, MAX_SECONDS))
}

// Both directions count from 1 March of year 0, so that the leap day is the last of its year: 400 years are
// 146 097 days, 719 468 of which lie before 1970-01-01, and the month lengths from March on repeat in fives
// of 153 days.

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let months_since_march = (month + 9) % 12;
    let year = year - i64::from(month <= 2);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    year * 365 + leap_days + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let day_of_cycle = days.rem_euclid(146_097);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month = (months_since_march + 2) % 12 + 1;
    (cycle * 400 + year_of_cycle + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: HttpDate = HttpDate::from_unix_seconds(1_764_440_643); // Sat, 29 Nov 2025 18:24:03 GMT

    fn parse(text: &str) -> Option<i64> {
        HttpDate::parse(text.as_bytes(), NOW).map(HttpDate::unix_seconds)
    }

    #[test]
    fn h05_all_three_date_forms_name_the_same_instant() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "sun, 06 nov 1994 08:49:37 utc",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_date_is_refused() {
        for text in [
            "",
            "0",
            "-1",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 EST",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            " Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nox 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 29 Feb 2023 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:3é GMT",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn two_digit_years_more_than_fifty_years_ahead_lie_in_the_past() {
        let year = |two: u32| parse(&format!("Monday, 01-Jan-{two:02} 00:00:00 GMT")).unwrap();
        assert_eq!(year(75), parse("Wed, 01 Jan 2075 00:00:00 GMT").unwrap());
        assert_eq!(year(76), parse("Thu, 01 Jan 1976 00:00:00 GMT").unwrap());
        assert_eq!(year(25), parse("Wed, 01 Jan 2025 00:00:00 GMT").unwrap());
        assert_eq!(year(0), parse("Sat, 01 Jan 2000 00:00:00 GMT").unwrap());
    }

    #[test]
    fn leap_days_and_leap_seconds_are_read() {
        assert_eq!(parse("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        assert_eq!(
            parse("Sat, 31 Dec 2016 23:59:60 GMT"),
            parse("Sun, 01 Jan 2017 00:00:00 GMT")
        );
    }

    #[test]
    fn dates_outside_four_digit_years_become_the_nearest_end() {
        assert_eq!(
            HttpDate::from_unix_seconds(i64::MAX).to_string(),
            "Fri, 31 Dec 9999 23:59:59 GMT"
        );
        assert_eq!(
            HttpDate::from_unix_seconds(i64::MIN).to_string(),
            "Sat, 01 Jan 0000 00:00:00 GMT"
        );
        assert_eq!(parse("Fri, 31 Dec 9999 23:59:60 GMT"), Some(MAX_SECONDS));
    }

    #[test]
    fn time_since_a_later_date_is_zero() {
        let later = HttpDate::from_unix_seconds(NOW.unix_seconds() + 5);
        assert_eq!(later.saturating_since(NOW), Duration::from_secs(5));
        assert_eq!(NOW.saturating_since(later), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn every_date_reads_back_as_written(seconds in MIN_SECONDS..=MAX_SECONDS) {
            let date = HttpDate::from_unix_seconds(seconds);
            prop_assert_eq!(HttpDate::parse(date.to_string().as_bytes(), NOW), Some(date));
            prop_assert_eq!(date.to_value(), HeaderValue::try_from(date.to_string()).unwrap());
        }

        #[test]
        fn no_bytes_make_the_readers_panic(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..64),
                "(Sun|Sunday|Feb)?,? ?[0-9]{0,3}[- ](Nov|Feb)?[- ][0-9]{0,5} [0-9:]{0,9} ?(GMT)?"
                    .prop_map(String::into_bytes),
            ],
            now in any::<i64>(),
        ) {
            let now = HttpDate::from_unix_seconds(now);
            if let Some(date) = HttpDate::parse(&bytes, now) {
                prop_assert!((MIN_SECONDS..=MAX_SECONDS).contains(&date.unix_seconds()));
            }
        }
    }
}
