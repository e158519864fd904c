//! Compares what a client or an origin saw with what a script expects, one condition at a time.
//! The conditions are short lines, so that a script reads like the exchange it is about.
//! A condition that cannot be read fails: it never counts as met.

use sfv::{BareItem, List, ListEntry, Parser};

use crate::{dates::Names, wire::Head};

/// Returns what is wrong with a head, seen from one condition:
///
/// - `name: value` all lines of the field, joined by `, `, are this
/// - `name` it is there; `!name` it is not
/// - `name ~ 2..9` it is one whole number in this range
/// - `name has text`, `name hasnt text`
/// - `name lines a | b` it has these lines in this order
pub(crate) fn field(condition: &str, head: &Head, names: &Names) -> Option<String> {
    let condition = &names.fill(condition);
    if let Some(name) = condition.strip_prefix('!') {
        return head
            .combined(name)
            .map(|seen| format!("no {name} | {name}: {seen}"));
    }
    let end = condition.find([':', ' ']).unwrap_or(condition.len());
    let (name, rest) = condition.split_at(end);
    let seen = head.combined(name);
    let met = if rest.is_empty() {
        seen.is_some()
    } else if let Some(value) = rest.strip_prefix(':') {
        seen.as_deref() == Some(value.trim())
    } else if let Some(range) = rest.strip_prefix(" ~ ") {
        seen.as_deref().is_some_and(|seen| within(seen, range))
    } else if let Some(text) = rest.strip_prefix(" has ") {
        seen.as_deref().is_some_and(|seen| seen.contains(text))
    } else if let Some(text) = rest.strip_prefix(" hasnt ") {
        seen.as_deref().is_none_or(|seen| !seen.contains(text))
    } else if let Some(lines) = rest.strip_prefix(" lines ") {
        head.lines(name).eq(lines.split(" | "))
    } else {
        return Some(format!("a condition that can be read | {condition}"));
    };
    (!met).then(|| format!("{condition} | {}", seen.unwrap_or_else(|| format!("no {name}"))))
}

/// Returns what is wrong with the last member of `Cache-Status`: it must have these parameters and no others.
pub(crate) fn label(wanted: &[String], head: &Head) -> Option<String> {
    let seen = head.combined("cache-status").unwrap_or_default();
    let wrong = || {
        Some(format!(
            "cache-status with exactly {} | {seen:?}",
            wanted.join("; ")
        ))
    };
    let Ok(parameters) = last_parameters(&seen) else {
        return wrong();
    };
    let met = |condition: &String| {
        let (name, value) = condition.split_once(['=', '~']).unwrap_or((condition, "?1"));
        parameters.iter().any(|(known, seen)| {
            known == name
                && if condition.contains('~') {
                    within(seen, value)
                } else {
                    seen == value
                }
        })
    };
    if wanted.len() == parameters.len() && wanted.iter().all(met) {
        None
    } else {
        wrong()
    }
}

/// Returns what is wrong with `Cache-Status` whatever the script says (RFC 9211 §2).
pub(crate) fn any_label(head: &Head) -> Option<String> {
    let seen = head.combined("cache-status")?;
    match last_parameters(&seen) {
        Err(problem) => Some(format!("a readable cache-status | {problem}: {seen:?}")),
        Ok(parameters) => {
            let has = |name: &str| {
                parameters
                    .iter()
                    .any(|(known, value)| known == name && value != "?0")
            };
            (has("hit") && has("fwd")).then(|| format!("hit or fwd, not both | {seen}"))
        }
    }
}

fn last_parameters(text: &str) -> Result<Vec<(String, String)>, String> {
    let list: List = Parser::new(text).parse().map_err(|error| format!("{error}"))?;
    let Some(ListEntry::Item(item)) = list.last() else {
        return Err("no item at the end".to_owned());
    };
    if !matches!(item.bare_item, BareItem::Token(_) | BareItem::String(_)) {
        return Err("neither a token nor a string".to_owned());
    }
    Ok(item
        .params
        .iter()
        .map(|(name, value)| (name.to_string(), plain(value)))
        .collect())
}

fn plain(value: &BareItem) -> String {
    match value {
        BareItem::Token(token) => token.as_str().to_owned(),
        BareItem::String(text) => text.as_str().to_owned(),
        BareItem::Integer(number) => number.to_string(),
        BareItem::Boolean(yes) => if *yes { "?1" } else { "?0" }.to_owned(),
        BareItem::Decimal(_) | BareItem::ByteSequence(_) | BareItem::Date(_) | BareItem::DisplayString(_) => {
            format!("{value:?}")
        }
    }
}

/// Whether a text is one whole number in a range such as `2..9`, both ends included.
fn within(text: &str, range: &str) -> bool {
    let Some((low, high)) = range.trim().split_once("..") else {
        return false;
    };
    match (text.parse::<i64>(), low.parse::<i64>(), high.parse::<i64>()) {
        (Ok(number), Ok(low), Ok(high)) => low <= number && number <= high,
        _ => false,
    }
}
