//! Judges one step: what the origin saw and what the client got, against what the script expects of both.
//! The first thing that is wrong is told, as `condition | what came instead`.
//! It sends nothing and waits for nothing.

use crate::{
    check,
    client::Got,
    dates::Names,
    origin::Seen,
    script::{Answer, Framing, Script, Step},
    wire::{Head, latin},
};

/// In place of a status: whichever of 502, 503 and 504 fits the failure.
const ANY_GATEWAY_ERROR: &str = "50x";

/// One script, and what its placeholders stand for.
pub(crate) struct Judge<'s> {
    pub(crate) script: &'s Script,
    pub(crate) names: &'s Names,
}

impl Judge<'_> {
    pub(crate) fn origin_saw(&self, step: &Step, seen: &[Seen]) -> Option<String> {
        let usual = usize::from(step.answer.is_some()) + usize::from(step.again.is_some());
        let wanted = step.asked.unwrap_or(usual);
        // A connection that ends without a byte may have been taken for an idle one that ended by itself.
        let is_silent = step
            .answer
            .as_ref()
            .is_some_and(|answer| answer.framing == Framing::Nothing);
        let again = is_silent && seen.len() == wanted + 1;
        let right = seen.len() == wanted || again || (step.maybe && seen.len() < wanted);
        if !right {
            let lines: Vec<String> = seen
                .iter()
                .map(|seen| format!("{} {}", seen.method, seen.target))
                .collect();
            return Some(format!(
                "the origin is asked {wanted} times | {} times {}",
                seen.len(),
                lines.join(", ")
            ));
        }
        let first = seen.first()?;
        let (wanted, body) = (self.names.fill(&step.body), latin(&first.body));
        if body != wanted {
            return Some(format!("the origin gets the body {wanted:?} | {body:?}"));
        }
        let of_method = |condition: &String| condition.chars().all(|one| one.is_ascii_uppercase());
        step.sees.iter().find_map(|condition| {
            if of_method(condition) {
                (first.method != *condition)
                    .then(|| format!("the origin sees {condition} | {}", first.method))
            } else {
                check::field(condition, &first.head, self.names)
                    .map(|wrong| format!("the origin sees {wrong}"))
            }
        })
    }

    pub(crate) fn client_got(&self, step: &Step, number: usize, got: &Got, asked: usize) -> Option<String> {
        if step.cut {
            let seen = !got.complete || got.status >= 500;
            return (!seen).then(|| format!("a visible cut or an error | {} {:?}", got.status, got.body));
        }
        if !got.complete {
            return Some(format!("a whole body | {:?} and then an end", got.body));
        }
        let stated = step.gets.first().filter(|first| is_status(first));
        let source = self.source(step, number);
        let wanted = match stated {
            Some(stated) => stated.clone(),
            None => source.map_or_else(String::new, |answer| answer.status.to_string()),
        };
        if !wanted.is_empty() && !is_one_of(got.status, &wanted) {
            return Some(format!("status {wanted} | {} {:?}", got.status, short(&got.body)));
        }
        if let Some(wanted) = self
            .body(step, source, got.status)
            .filter(|wanted| *wanted != got.body)
        {
            return Some(format!("the body {:?} | {:?}", short(&wanted), short(&got.body)));
        }
        let conditions = step.gets.iter().filter(|condition| Some(*condition) != stated);
        let wrong = conditions
            .filter_map(|condition| check::field(condition, &got.head, self.names))
            .next()
            .or_else(|| {
                always(
                    &got.head,
                    asked == 0 && step.from.is_some_and(|from| from <= number),
                )
            });
        let wrong = wrong.or_else(|| {
            step.label
                .as_ref()
                .and_then(|label| check::label(label, &got.head))
        });
        wrong.map(|wrong| format!("the client gets {wrong}"))
    }

    /// The answer of the origin whose status and body the client must get.
    fn source<'s>(&'s self, step: &'s Step, number: usize) -> Option<&'s Answer> {
        let sound = |answer: &&Answer| !matches!(answer.framing, Framing::Nothing | Framing::Garbage);
        match step.from {
            Some(from) => {
                let step = self.script.steps.get(from - 1)?;
                step.again.as_ref().or(step.answer.as_ref())
            }
            None if step.maybe => None,
            None => self
                .script
                .steps
                .get(number)?
                .again
                .as_ref()
                .or(step.answer.as_ref())
                .filter(sound),
        }
    }

    fn body(&self, step: &Step, source: Option<&Answer>, status: u16) -> Option<String> {
        if step.method == "HEAD" || matches!(status, 204 | 304) {
            return Some(String::new());
        }
        if let Some(gives) = &step.gives {
            return Some(self.names.fill(gives));
        }
        let source = source?;
        // A 416 describes nothing, so whoever makes it may say what they like.
        let comparable = status != 416 && (source.status == status || step.from.is_some());
        comparable.then(|| self.names.fill(&source.text))
    }
}

/// What holds for every answer: a `Date` (H16), a readable label (CS1, CS2), and `Age` on what is reused (C11).
fn always(head: &Head, reused: bool) -> Option<String> {
    let age = head.combined("age");
    if reused
        && !age
            .as_deref()
            .is_some_and(|age| age.bytes().all(|one| one.is_ascii_digit()) && !age.is_empty())
    {
        return Some(format!("an age in seconds | {age:?}"));
    }
    if head.lines("date").count() != 1 {
        return Some(format!("one date | {:?}", head.combined("date")));
    }
    check::any_label(head)
}

/// Whether the first expectation is about the status: `200`, `50x`, or several of them as in `206/50x`.
fn is_status(text: &str) -> bool {
    text.split('/')
        .all(|one| one == ANY_GATEWAY_ERROR || one.parse::<u16>().is_ok())
}

fn is_one_of(status: u16, wanted: &str) -> bool {
    let is =
        |one: &str| one == status.to_string() || (one == ANY_GATEWAY_ERROR && matches!(status, 502..=504));
    wanted.split('/').any(is)
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
