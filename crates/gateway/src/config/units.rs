//! Decides how durations, sizes and shares are written in a contract.
//! It exists so that every number in a contract carries its unit and is read by one grammar, in integers.
//! It refuses numbers without a unit, fractions of a unit, and zero durations, which have no use anywhere.

use std::time::Duration;

/// What is wrong with a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDuration {
    /// What, in words.
    pub why: String,
    /// How it may have been meant, as a contract writes it; several where it can be read in several ways, none where
    /// nothing that is allowed comes near.
    pub meant: Vec<String>,
}

/// Reads a duration: an integer with `ms`, `s`, `m`, `h` or `d`, longer than zero.
///
/// ```
/// use evenkeel_gateway::config::units::duration;
/// use std::time::Duration;
/// assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
/// assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
/// let wrong = duration("1min").unwrap_err();
/// assert_eq!(wrong.why, "unknown unit \"min\"");
/// assert_eq!(wrong.meant, ["1m"]);
/// assert_eq!(duration("-1s").unwrap_err().why, "negative");
/// ```
///
/// # Errors
/// What is wrong with it, and how it may have been meant.
pub fn duration(text: &str) -> Result<Duration, NoDuration> {
    let wrong = |why: &str, meant: Vec<String>| NoDuration {
        why: why.to_owned(),
        meant,
    };
    if let Some((number, unit)) = split(text)
        && let Some(size) = millis_of(unit)
    {
        return match number.checked_mul(size) {
            Some(0) => Err(wrong("zero", Vec::new())),
            Some(millis) => Ok(Duration::from_millis(millis)),
            None => Err(wrong("too long", Vec::new())),
        };
    }
    let trimmed = text.trim();
    if let Some(number) = digits(trimmed) {
        let meant = if number == 0 {
            Vec::new()
        } else {
            vec![format!("{number}s"), format!("{number}ms")]
        };
        return Err(wrong("no unit", meant));
    }
    if trimmed.starts_with('-') {
        return Err(wrong("negative", Vec::new()));
    }
    let meant = loosely(trimmed)
        .filter(|millis| *millis > 0)
        .map(|millis| show_duration(Duration::from_millis(millis)));
    let meant = Vec::from_iter(meant);
    let unit = trimmed.trim_start_matches(|c: char| !c.is_alphabetic());
    let is_one_word = !unit.is_empty() && unit.chars().all(char::is_alphabetic);
    Err(if !trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        wrong("no number", meant)
    } else if is_one_word && millis_of(unit).is_none() {
        let unit: String = unit.chars().take(20).collect();
        wrong(&format!("unknown unit \"{unit}\""), meant)
    } else if trimmed.contains('.') {
        wrong("a fraction", meant)
    } else {
        wrong("not one integer with one unit", meant)
    })
}

/// Returns the milliseconds of a unit that contracts know.
fn millis_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    })
}

/// The ways in which people write units elsewhere, beside those of a contract.
const ALIASES: [(&str, &[&str]); 5] = [
    ("ms", &["msec", "msecs", "millis", "millisecond", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("m", &["min", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("d", &["day", "days"]),
];

/// Reads what other tools take for a duration: fractions, several units, blanks, long names. In milliseconds; `None`
/// where it is not a whole number of them.
fn loosely(text: &str) -> Option<u64> {
    let mut rest = text.trim_start_matches('+').trim_start();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, behind) =
            rest.split_at(rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?);
        let behind = behind.trim_start();
        let (unit, behind) =
            behind.split_at(behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len()));
        let unit = unit.to_lowercase();
        let known = ALIASES
            .iter()
            .find(|(known, others)| unit == *known || others.contains(&unit.as_str()))?;
        let size = millis_of(known.0)?;
        let number = number.replace('_', "");
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, "0"));
        if fraction.len() > 9 {
            return None;
        }
        let ten = 10_u64.pow(u32::try_from(fraction.len()).ok()?);
        let part = digits(fraction)?.checked_mul(size)?;
        if part % ten != 0 {
            return None;
        }
        total = total
            .checked_add(digits(whole)?.checked_mul(size)?)?
            .checked_add(part / ten)?;
        rest = behind.trim_start();
    }
    Some(total)
}

/// Reads a size in bytes: an integer with `B`, `KiB`, `MiB` or `GiB`.
///
/// ```
/// use evenkeel_gateway::config::units::size;
/// assert_eq!(size("64KiB"), Some(65_536));
/// assert_eq!(size("1MB"), None);
/// ```
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let bytes = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(bytes)
}

/// Reads a share of at most 100 % into parts per million: a number with at most four decimals and `%`.
///
/// ```
/// use evenkeel_gateway::config::units::share_ppm;
/// assert_eq!(share_ppm("50%"), Some(500_000));
/// assert_eq!(share_ppm("0.1%"), Some(1_000));
/// assert_eq!(share_ppm("101%"), None);
/// assert_eq!(share_ppm("0.5"), None);
/// ```
#[must_use]
pub fn share_ppm(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 4 {
        return None;
    }
    let mut ppm = digits(whole)?.checked_mul(10_000)?;
    let mut place = 1_000;
    for digit in fraction.bytes() {
        if !digit.is_ascii_digit() {
            return None;
        }
        ppm = ppm.checked_add(u64::from(digit - b'0') * place)?;
        place /= 10;
    }
    u32::try_from(ppm).ok().filter(|ppm| *ppm <= 1_000_000)
}

/// Splits leading digits from the unit behind them.
fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    Some((digits(number)?, unit))
}

/// Reads digits alone: no sign, no blanks, no overflow.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Writes a duration the way a contract does, in the largest unit that divides it.
///
/// ```
/// use evenkeel_gateway::config::units::show_duration;
/// use std::time::Duration;
/// assert_eq!(show_duration(Duration::from_millis(1_500)), "1500ms");
/// assert_eq!(show_duration(Duration::from_secs(120)), "2m");
/// ```
#[must_use]
pub fn show_duration(span: Duration) -> String {
    let millis = span.as_millis();
    for (size, unit) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if millis >= size && millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for text in ["1ms", "250ms", "3s", "2m", "1h", "7d"] {
            assert_eq!(duration(text).map(show_duration).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_is_not_an_integer_with_a_known_unit_is_refused() {
        for text in [
            "",
            "s",
            "5",
            "5 s",
            "+5s",
            "-5s",
            "1_000s",
            "1e3s",
            "0ms",
            "5S",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "1", "1kib", "1 MiB", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
        for text in ["", "%", ".5%", "5.%", "0.00001%", "-1%", "100.0001%", "1e1%"] {
            assert_eq!(share_ppm(text), None, "{text}");
        }
    }

    #[test]
    fn a_wrong_duration_says_what_is_wrong_and_how_it_was_meant() {
        for (text, why, meant) in [
            ("1min", "unknown unit \"min\"", &["1m"][..]),
            ("2 Hours", "unknown unit \"Hours\"", &["2h"]),
            ("5S", "unknown unit \"S\"", &["5s"]),
            ("3fortnights", "unknown unit \"fortnights\"", &[]),
            ("500", "no unit", &["500s", "500ms"]),
            ("0", "no unit", &[]),
            ("-5s", "negative", &[]),
            ("0ms", "zero", &[]),
            ("1.5s", "a fraction", &["1500ms"]),
            ("0.0001s", "a fraction", &[]),
            ("1m30s", "not one integer with one unit", &["90s"]),
            ("5 s", "not one integer with one unit", &["5s"]),
            (" 5s", "not one integer with one unit", &["5s"]),
            ("1_000ms", "not one integer with one unit", &["1s"]),
            ("+5s", "no number", &["5s"]),
            ("", "no number", &[]),
            ("soon", "no number", &[]),
            ("18446744073709551615d", "too long", &[]),
        ] {
            let wrong = duration(text).unwrap_err();
            assert_eq!(
                (wrong.why.as_str(), wrong.meant.as_slice()),
                (
                    why,
                    &meant.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..]
                ),
                "{text}"
            );
            for text in wrong.meant {
                assert!(duration(&text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn a_share_is_exact_to_one_part_per_million() {
        assert_eq!(share_ppm("0.0001%"), Some(1));
        assert_eq!(share_ppm("99.9999%"), Some(999_999));
        assert_eq!(share_ppm("100%"), Some(1_000_000));
        assert_eq!(share_ppm("0%"), Some(0));
    }
}
