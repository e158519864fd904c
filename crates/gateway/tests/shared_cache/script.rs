//! Reads the scripts beside this file: what a client asks, what the origin answers, what each of them must see.
//! They are data so that a person can read, section by section of the RFCs, what a shared cache does on the wire.
//! A script with a key nobody knows, or a step that expects nothing, is refused.
//!
//! `docs/reference/shared-cache-suite.md` explains the keys.

use std::time::Duration;

use toml::{Table, Value};

/// How a script counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An RFC asks for it.
    Must,
    /// An RFC allows it, and a good cache does it.
    May,
    /// It is about the labels of this gateway, or about rules of its own; other proxies are not asked.
    Own,
}

/// A sequence of steps on a path of its own.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) rule: String,
    pub(crate) kind: Kind,
    /// Why this gateway does otherwise on purpose.
    pub(crate) differs: Option<String>,
    pub(crate) steps: Vec<Step>,
}

/// One request, or several equal ones at the same time, and everything that must come of it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) pause: Duration,
    /// The origin stops listening before this step, for the rest of the script.
    pub(crate) down: bool,
    pub(crate) method: String,
    /// What follows the path of the script.
    pub(crate) suffix: String,
    pub(crate) fields: Vec<String>,
    pub(crate) body: String,
    pub(crate) times: usize,
    /// What the origin answers; without it the origin must not be asked.
    pub(crate) answer: Option<Answer>,
    /// What it answers when it is asked once more.
    pub(crate) again: Option<Answer>,
    /// The origin is asked after the client has its answer.
    pub(crate) background: bool,
    /// The origin may be asked, or not.
    pub(crate) maybe: bool,
    /// How often the origin is asked, if not once.
    pub(crate) asked: Option<usize>,
    /// The step whose body the client must get, counted from 1.
    pub(crate) from: Option<usize>,
    /// The body that the client must get, where it is that of no step.
    pub(crate) gives: Option<String>,
    /// The client must see that the body broke off, or get an error.
    pub(crate) cut: bool,
    /// What the client must see in the head of the answer.
    pub(crate) gets: Vec<String>,
    /// What the origin must see in the head of the request.
    pub(crate) sees: Vec<String>,
    /// The parameters of the last member of `Cache-Status`: these and no others.
    pub(crate) label: Option<Vec<String>>,
}

/// What the origin sends.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<String>,
    pub(crate) text: String,
    /// What it sends instead, with 200, to a request without `Range`.
    pub(crate) whole: Option<String>,
    pub(crate) framing: Framing,
    pub(crate) trailers: Vec<String>,
    /// An interim answer that goes before: status and field lines.
    pub(crate) interim: Vec<String>,
    pub(crate) delay: Duration,
}

/// How a body is sent, and how it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    Length,
    Chunked,
    /// Chunks of one byte each.
    Bytewise,
    /// Ends when the connection does.
    Close,
    /// Closes in the middle of a body with `Content-Length`.
    CutLength,
    /// Closes after a chunk, without the last one.
    CutChunked,
    /// Closes without a byte.
    Nothing,
    /// Sends bytes that are no HTTP.
    Garbage,
}

const SCRIPT_KEYS: [&str; 10] = [
    "name",
    "rule",
    "kind",
    "differs",
    "each",
    "steps",
    "reused",
    "not_reused",
    "request",
    "pause",
];
const STEP_KEYS: [&str; 23] = [
    "pause",
    "down",
    "request",
    "body",
    "times",
    "answer",
    "again",
    "background",
    "maybe",
    "asked",
    "from",
    "gives",
    "cut",
    "gets",
    "sees",
    "label",
    "text",
    "whole",
    "framing",
    "trailers",
    "interim",
    "delay",
    "note",
];

/// Returns all scripts of a file, or what is wrong with it.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Script>, String> {
    let table: Table = text.parse().map_err(|error| format!("{file}: {error}"))?;
    let Some(Value::Array(scripts)) = table.get("script") else {
        return Err(format!("{file}: no [[script]]"));
    };
    let mut found = Vec::new();
    for script in scripts {
        let script = script.as_table().ok_or("a script is a table")?;
        for row in rows(script).map_err(|error| format!("{file}: {error}"))? {
            let filled = fill(&Value::Table(script.clone()), &row);
            let filled = filled.as_table().expect("a table stays one");
            let name = text_of(filled, "name").unwrap_or_default();
            found.push(script_of(file, filled).map_err(|error| format!("{file}: {name}: {error}"))?);
        }
    }
    Ok(found)
}

type Row = Vec<(String, String)>;

/// The rows of `each`: lists of equal length, read side by side; without it one empty row.
fn rows(script: &Table) -> Result<Vec<Row>, String> {
    let Some(each) = script.get("each") else {
        return Ok(vec![Row::new()]);
    };
    let each = each.as_table().ok_or("each is a table of lists")?;
    let mut rows: Vec<Row> = Vec::new();
    for (key, values) in each {
        let values = values.as_array().ok_or("each is a table of lists")?;
        if rows.is_empty() {
            rows = vec![Row::new(); values.len()];
        }
        if rows.len() != values.len() {
            return Err(format!(
                "each.{key} has {} values, others {}",
                values.len(),
                rows.len()
            ));
        }
        for (row, value) in rows.iter_mut().zip(values) {
            let value = value.as_str().ok_or("each holds texts")?;
            row.push((format!("{{{key}}}"), value.to_owned()));
        }
    }
    Ok(rows)
}

/// Puts the values of a row in place of their names, everywhere.
fn fill(value: &Value, row: &Row) -> Value {
    match value {
        Value::String(text) => Value::String(
            row.iter()
                .fold(text.clone(), |text, (name, value)| text.replace(name, value)),
        ),
        Value::Array(values) => Value::Array(values.iter().map(|value| fill(value, row)).collect()),
        Value::Table(table) => Value::Table(
            table
                .iter()
                .map(|(key, value)| (key.clone(), fill(value, row)))
                .collect(),
        ),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => value.clone(),
    }
}

fn script_of(file: &str, table: &Table) -> Result<Script, String> {
    known(table, &SCRIPT_KEYS)?;
    let name = text_of(table, "name").ok_or("no name")?;
    let rule = text_of(table, "rule")
        .filter(|rule| !rule.is_empty())
        .ok_or("no rule")?;
    let kind = match text_of(table, "kind").as_deref() {
        None | Some("must") => Kind::Must,
        Some("may") => Kind::May,
        Some("own") => Kind::Own,
        Some(other) => return Err(format!("kind {other:?}: must, may or own")),
    };
    let steps = match table.get("steps") {
        Some(Value::Array(steps)) => steps.clone(),
        _ => two_steps(table)?,
    };
    let steps: Vec<Step> = steps
        .iter()
        .enumerate()
        .map(|(number, step)| step_of(step, number + 1))
        .collect::<Result<_, _>>()?;
    Ok(Script {
        file: file.to_owned(),
        name,
        rule,
        kind,
        differs: text_of(table, "differs"),
        steps,
    })
}

/// `reused` and `not_reused` stand for an answer and a second request that it answers, or does not.
fn two_steps(table: &Table) -> Result<Vec<Value>, String> {
    let mut second = Table::new();
    for key in ["request", "pause"] {
        if let Some(value) = table.get(key) {
            second.insert(key.to_owned(), value.clone());
        }
    }
    let answer = match (table.get("reused"), table.get("not_reused")) {
        (Some(answer), None) => {
            second.insert("from".to_owned(), Value::Integer(1));
            answer
        }
        (None, Some(answer)) => {
            let fields = ["200", "cache-control: no-store"].map(|text| Value::String(text.to_owned()));
            second.insert("answer".to_owned(), Value::Array(fields.to_vec()));
            answer
        }
        _ => return Err("one of steps, reused, not_reused".to_owned()),
    };
    let mut first = Table::new();
    first.insert("answer".to_owned(), answer.clone());
    Ok(vec![Value::Table(first), Value::Table(second)])
}

fn step_of(value: &Value, number: usize) -> Result<Step, String> {
    let table = value.as_table().ok_or("a step is a table")?;
    known(table, &STEP_KEYS)?;
    let request = list(table, "request")?.unwrap_or_else(|| vec!["GET".to_owned()]);
    let (first, fields) = request.split_first().ok_or("an empty request")?;
    let (method, suffix) = first.split_once(' ').unwrap_or((first, ""));
    let answer = match list(table, "answer")? {
        Some(lines) => Some(answer_of(&lines, table, number)?),
        None => None,
    };
    let background = match list(table, "background")? {
        Some(lines) => Some(answer_of(&lines, table, number)?),
        None => None,
    };
    let again = match list(table, "again")? {
        Some(lines) => Some(answer_of(&lines, &Table::new(), number)?),
        None => None,
    };
    let from = count(table, "from")?;
    let gets = list(table, "gets")?.unwrap_or_default();
    if answer.is_none() && from.is_none() && gets.is_empty() {
        return Err(format!("step {number} expects nothing"));
    }
    if from.is_some_and(|from| from == 0 || from > number) {
        return Err(format!("step {number}: from counts from 1 and looks back"));
    }
    Ok(Step {
        pause: seconds(table, "pause")?,
        down: flag(table, "down"),
        method: method.to_owned(),
        suffix: suffix.to_owned(),
        fields: fields.to_vec(),
        body: text_of(table, "body").unwrap_or_default(),
        times: count(table, "times")?.unwrap_or(1),
        background: background.is_some(),
        answer: answer.or(background),
        again,
        maybe: flag(table, "maybe"),
        asked: count(table, "asked")?,
        from,
        gives: text_of(table, "gives"),
        cut: flag(table, "cut"),
        gets,
        sees: list(table, "sees")?.unwrap_or_default(),
        label: list(table, "label")?,
    })
}

fn answer_of(lines: &[String], step: &Table, number: usize) -> Result<Answer, String> {
    let (status, fields) = lines.split_first().ok_or("an empty answer")?;
    let framing = match text_of(step, "framing").as_deref() {
        None | Some("length") => Framing::Length,
        Some("chunked") => Framing::Chunked,
        Some("bytewise") => Framing::Bytewise,
        Some("close") => Framing::Close,
        Some("cut-length") => Framing::CutLength,
        Some("cut-chunked") => Framing::CutChunked,
        Some("nothing") => Framing::Nothing,
        Some("garbage") => Framing::Garbage,
        Some(other) => return Err(format!("framing {other:?} is none")),
    };
    Ok(Answer {
        status: status.parse().map_err(|_| format!("{status:?} is no status"))?,
        fields: fields.to_vec(),
        text: text_of(step, "text").unwrap_or_else(|| format!("the body of step {number}")),
        whole: text_of(step, "whole"),
        framing,
        trailers: list(step, "trailers")?.unwrap_or_default(),
        interim: list(step, "interim")?.unwrap_or_default(),
        delay: seconds(step, "delay")?,
    })
}

fn known(table: &Table, keys: &[&str]) -> Result<(), String> {
    match table.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown key {key:?}")),
        None => Ok(()),
    }
}

fn text_of(table: &Table, key: &str) -> Option<String> {
    table.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn flag(table: &Table, key: &str) -> bool {
    table.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn count(table: &Table, key: &str) -> Result<Option<usize>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(value) => value
            .as_integer()
            .and_then(|count| usize::try_from(count).ok())
            .map(Some)
            .ok_or_else(|| format!("{key} is a count")),
    }
}

fn seconds(table: &Table, key: &str) -> Result<Duration, String> {
    match table.get(key) {
        None => Ok(Duration::ZERO),
        Some(Value::Integer(seconds)) => u64::try_from(*seconds)
            .map(Duration::from_secs)
            .map_err(|_| format!("{key} is negative")),
        Some(Value::Float(seconds)) => {
            Duration::try_from_secs_f64(*seconds).map_err(|error| error.to_string())
        }
        Some(_) => Err(format!("{key} is a number of seconds")),
    }
}

fn list(table: &Table, key: &str) -> Result<Option<Vec<String>>, String> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let lines = value.as_array().ok_or_else(|| format!("{key} is a list"))?;
    lines
        .iter()
        .map(|line| {
            line.as_str()
                .map(str::to_owned)
                .ok_or_else(|| format!("{key} holds texts"))
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}
