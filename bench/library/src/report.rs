//! Decides what is shown: one table with figures, ratios, goals and verdicts, and the same as JSON.
//! It exists so that nobody has to divide by hand or look a goal up elsewhere.
//! It refuses to round a verdict: goals are compared with the exact median.

use serde_json::{Value, json};

use crate::{
    comparison::{Bound, Comparison, Measure},
    rounds::Figures,
};

/// The figures of one comparison.
struct Line<'c> {
    comparison: &'c Comparison,
    ours: Spread,
    peer: Spread,
    /// Ours to the peer's inside each round; a ratio of speeds or of costs, by the measure.
    ratio: Spread,
}

/// A median with the middle half around it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: usize| {
            let place = sorted.len().saturating_sub(1) * quarter / 4;
            sorted.get(place).copied().unwrap_or(f64::NAN)
        };
        Self {
            median: at(2),
            low: at(1),
            high: at(3),
        }
    }
}

impl<'c> Line<'c> {
    fn new(comparison: &'c Comparison, figures: &Figures) -> Self {
        let of = |name| {
            figures
                .get(&(name, comparison.measure))
                .map_or(&[][..], Vec::as_slice)
        };
        let (ours, peer) = (of(comparison.ours), of(comparison.peer));
        let ratios = ours
            .iter()
            .zip(peer)
            .map(|(ours, peer)| match comparison.measure.is_speed() {
                true => peer / ours,
                false => ours / peer,
            });
        Self {
            comparison,
            ours: Spread::of(ours.iter().copied()),
            peer: Spread::of(peer.iter().copied()),
            ratio: Spread::of(ratios),
        }
    }

    /// What the goals are about.
    fn judged(&self) -> f64 {
        match self.comparison.measure {
            Measure::Allocations => self.ours.median,
            Measure::OneThread | Measure::TwoThreads | Measure::ManyTasks => self.ratio.median,
        }
    }

    fn verdict(&self, bound: Option<Bound>) -> Option<bool> {
        bound.map(|bound| bound.is_met_by(self.judged()))
    }

    fn cells(&self) -> [String; COLUMNS] {
        let Comparison {
            row,
            measure,
            ours,
            peer,
            must,
            ambitious,
        } = self.comparison;
        let goal = |bound: &Option<Bound>| match (bound, self.verdict(*bound)) {
            (Some(bound), Some(true)) => format!("{bound} pass"),
            (Some(bound), Some(false)) => format!("{bound} MISS"),
            (None, _) | (_, None) => String::new(),
        };
        [
            row.to_string(),
            measure.as_str().to_owned(),
            (*ours).to_owned(),
            figure(self.ours.median, *measure),
            (*peer).to_owned(),
            figure(self.peer.median, *measure),
            match measure {
                Measure::Allocations => String::new(),
                Measure::OneThread | Measure::TwoThreads | Measure::ManyTasks => {
                    let Spread { median, low, high } = self.ratio;
                    format!("{median:.2} ({low:.2}–{high:.2})")
                }
            },
            goal(must),
            goal(ambitious),
        ]
    }
}

/// Writes a figure with its unit.
fn figure(value: f64, measure: Measure) -> String {
    match measure {
        Measure::OneThread => format!("{value:.1} ns"),
        Measure::TwoThreads | Measure::ManyTasks => format!("{:.2} M/s", 1_000.0 / value),
        // Nothing above zero may look like zero.
        Measure::Allocations if value > 0.0 && value < 0.005 => format!("{value:.0e}"),
        Measure::Allocations => format!("{value:.2}"),
    }
}

const COLUMNS: usize = 9;
const HEAD: [&str; COLUMNS] = [
    "row",
    "measure",
    "ours",
    "figure",
    "peer",
    "figure",
    "ratio (middle half)",
    "must",
    "ambitious",
];
const TO_THE_RIGHT: [usize; 3] = [0, 3, 5];

/// Writes the table, and below it how many goals are met.
#[must_use]
pub fn table(comparisons: &[Comparison], figures: &Figures) -> String {
    let lines: Vec<Line<'_>> = comparisons
        .iter()
        .map(|comparison| Line::new(comparison, figures))
        .collect();
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(lines.iter().map(Line::cells));
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    let mut last_row = "";
    for row in &rows {
        if row[0] != last_row && !last_row.is_empty() {
            text.push('\n');
        }
        last_row = &row[0];
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match TO_THE_RIGHT.contains(&column) {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    let tally = |goal: fn(&Comparison) -> Option<Bound>| {
        let verdicts: Vec<bool> = lines
            .iter()
            .filter_map(|line| line.verdict(goal(line.comparison)))
            .collect();
        format!(
            "{} of {}",
            verdicts.iter().filter(|met| **met).count(),
            verdicts.len()
        )
    };
    text.push_str(&format!(
        "\nmust: {} met; ambitious: {} met\n",
        tally(|comparison| comparison.must),
        tally(|comparison| comparison.ambitious)
    ));
    text
}

/// Returns everything the table shows, with every round's figures in nanoseconds per call.
#[must_use]
pub fn json(comparisons: &[Comparison], figures: &Figures) -> Value {
    let lines = comparisons.iter().map(|comparison| {
        let line = Line::new(comparison, figures);
        json!({
            "row": comparison.row,
            "measure": comparison.measure.as_str(),
            "ours": comparison.ours,
            "peer": comparison.peer,
            "ours_median": line.ours.median,
            "peer_median": line.peer.median,
            "ratio_median": line.ratio.median,
            "ratio_middle_half": [line.ratio.low, line.ratio.high],
            "must": comparison.must.map(|bound| bound.to_string()),
            "must_met": line.verdict(comparison.must),
            "ambitious": comparison.ambitious.map(|bound| bound.to_string()),
            "ambitious_met": line.verdict(comparison.ambitious),
        })
    });
    let mut cases: Vec<_> = figures.iter().collect();
    cases.sort_by_key(|((name, measure), _)| (*name, measure.as_str()));
    let cases = cases.into_iter().map(
        |((name, measure), rounds)| json!({ "case": name, "measure": measure.as_str(), "rounds": rounds }),
    );
    json!({ "lines": lines.collect::<Vec<_>>(), "cases": cases.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{at_least, at_most, compare};

    fn figures(measure: Measure) -> Figures {
        Figures::from([
            (("we", measure), vec![10.0, 20.0, 30.0]),
            (("they", measure), vec![40.0, 40.0, 40.0]),
        ])
    }

    #[test]
    fn costs_divide_ours_by_theirs_and_speeds_the_other_way_round() {
        let pair = ("we", "they");
        let cost = compare(8, Measure::OneThread, pair, at_most(0.5), at_most(0.49));
        let text = table(std::slice::from_ref(&cost), &figures(Measure::OneThread));
        assert!(text.contains("20.0 ns"), "{text}");
        assert!(text.contains("0.50 (0.25–0.50)"), "{text}");
        assert!(text.contains("≤ 0.50 pass  ≤ 0.49 MISS"), "{text}");
        let speed = compare(8, Measure::TwoThreads, pair, at_least(2.0), None);
        let text = table(&[speed], &figures(Measure::TwoThreads));
        assert!(
            text.contains("50.00 M/s") && text.contains("≥ 2.00 pass"),
            "{text}"
        );
    }

    #[test]
    fn allocations_are_judged_by_the_count_itself() {
        let line = compare(
            9,
            Measure::Allocations,
            ("we", "they"),
            at_most(1.0),
            at_most(0.0),
        );
        let counts = Figures::from([
            (("we", Measure::Allocations), vec![1e-4]),
            (("they", Measure::Allocations), vec![10.0]),
        ]);
        let text = table(std::slice::from_ref(&line), &counts);
        assert!(text.contains("1e-4") && text.contains("≤ 0.00 MISS"), "{text}");
        assert_eq!(json(&[line], &counts)["lines"][0]["must_met"], true);
    }

    #[test]
    fn the_tally_counts_goals_and_not_lines() {
        let pair = ("we", "they");
        let lines = [
            compare(8, Measure::OneThread, pair, at_most(1.0), at_most(0.1)),
            compare(8, Measure::OneThread, pair, None, None),
        ];
        let text = table(&lines, &figures(Measure::OneThread));
        assert!(
            text.ends_with("must: 1 of 1 met; ambitious: 0 of 1 met\n"),
            "{text}"
        );
    }
}
