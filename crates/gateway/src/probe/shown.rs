//! Decides how a report on one answer is printed, for people and for programs.
//! It exists so that both say the same.
//! It refuses colours and tables: it is read in a terminal at night, and pasted into a ticket.

use super::judged::{Report, seconds, span};

impl Report {
    /// Writes it for people.
    pub(crate) fn to_text(&self) -> String {
        let mut lines = vec![
            format!("GET {}", self.url),
            format!(
                "route       {}, from {} as {}",
                self.route, self.dependency, self.target
            ),
            format!(
                "answer      {}{}, {} old",
                self.status.as_u16(),
                self.bytes
                    .map_or_else(String::new, |bytes| format!(", {bytes} bytes")),
                span(self.age)
            ),
        ];
        lines.push(match (self.kept, self.against.first()) {
            (true, _) => "kept        yes".to_owned(),
            (false, Some(first)) => format!("kept        no: {}", first.why),
            (false, None) => "kept        no".to_owned(),
        });
        for against in &self.against {
            lines.push(format!("            {}  <- {}", against.why, against.field));
            lines.push(format!("              {}", against.mend));
        }
        if let Some(fresh) = self.fresh {
            lines.push(format!(
                "fresh       for {} from now, without asking",
                span(fresh)
            ));
        }
        lines.push(match &self.stands_in {
            Some((left, by)) => format!("on failure  for {} from now, by {by}", span(*left)),
            None => "on failure  no: an outage now would not be answered by it".to_owned(),
        });
        for forbidden in &self.forbidden {
            let word = forbidden.word;
            if forbidden.set_aside {
                lines.push(format!(
                    "            {word}  <- {}, set aside by the contract",
                    forbidden.field
                ));
            } else {
                lines.push(format!("            {word}  <- {}", forbidden.field));
                lines.push(format!("              {}", forbidden.mend));
            }
        }
        for note in &self.notes {
            lines.push(format!("note        {note}"));
        }
        lines.join("\n")
    }

    /// Writes it for programs.
    pub(crate) fn to_json(&self) -> String {
        let against: Vec<_> = self
            .against
            .iter()
            .map(|one| serde_json::json!({ "why": one.why, "field": one.field, "mend": one.mend }))
            .collect();
        let forbidden: Vec<_> = self
            .forbidden
            .iter()
            .map(|one| {
                serde_json::json!({
                    "prohibition": one.word.as_str(),
                    "field": one.field,
                    "set_aside": one.set_aside,
                    "mend": one.mend,
                })
            })
            .collect();
        let json = serde_json::json!({
            "url": self.url,
            "route": self.route,
            "dependency": self.dependency,
            "target": self.target,
            "status": self.status.as_u16(),
            "bytes": self.bytes,
            "age_seconds": seconds(self.age),
            "kept": self.kept,
            "against": against,
            "fresh_for_seconds": self.fresh.map(seconds),
            "stands_in_for_seconds": self.stands_in.map(|(left, _)| seconds(left)),
            "limited_by": self.stands_in.map(|(_, by)| by),
            "forbidden": forbidden,
            "notes": self.notes,
        });
        format!("{json:#}")
    }
}
