//! Decides how durations, sizes and shares are written in a contract.
//! It exists so that every number in a contract carries its unit and is read by one grammar, in integers.
//! It refuses numbers without a unit, fractions of a unit, and zero durations, which have no use anywhere.

use std::time::Duration;

/// Reads a duration: an integer with `ms`, `s`, `m`, `h` or `d`, longer than zero.
///
/// ```
/// use evenkeel_gateway::config::units::duration;
/// use std::time::Duration;
/// assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
/// assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
/// assert_eq!(duration("0s"), None);
/// assert_eq!(duration("1.5s"), None);
/// assert_eq!(duration("-1s"), None);
/// ```
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let millis = number.checked_mul(millis)?;
    (millis > 0).then(|| Duration::from_millis(millis))
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
            assert_eq!(duration(text).map(show_duration).as_deref(), Some(text));
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
            assert_eq!(duration(text), None, "{text}");
        }
        for text in ["", "1", "1kib", "1 MiB", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
        for text in ["", "%", ".5%", "5.%", "0.00001%", "-1%", "100.0001%", "1e1%"] {
            assert_eq!(share_ppm(text), None, "{text}");
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
