//! Decides what the result of an attempt means to the breaker, to retries and to the ladder.
//! It exists so that all three read the same table and can never disagree about one result.
//! It refuses to guess: what no classifier knows is a fault, and a fault is shown, not papered over.

use crate::reason::Reason;

/// The way in which a dependency failed to give a usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outage {
    /// Refused, reset, name not found, TLS, unparsable.
    Failed,
    /// No answer in time.
    TimedOut,
    /// The answer ended early.
    Cut,
    /// An error answer that counts as an outage.
    ErrorAnswer,
}

impl Outage {
    /// Returns the reason word that a call carries when this outage kept it from being live.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Failed => Reason::DependencyFailed,
            Self::TimedOut => Reason::TimedOut,
            Self::Cut => Reason::Cut,
            Self::ErrorAnswer => Reason::ErrorAnswer,
        }
    }
}

/// What the result of an attempt was.
///
/// A classifier maps an error type to one of these; [`Class::of_status`] does it for HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The dependency could not answer.
    Outage(Outage),
    /// A good answer.
    Answer,
    /// The dependency's own refusal: a real answer, never hidden by old data.
    Refusal,
    /// A refusal that says the thing no longer exists (404, 410): its snapshot is retired too.
    Gone,
    /// The dependency asks to be left alone for a while (429).
    Busy,
    /// Schema violated, code broken, or an error nobody classified.
    Fault,
    /// evenkeel itself refused; the dependency was not asked.
    Local,
    /// The caller left.
    Cancelled,
}

impl Class {
    /// An outage of the plain kind: refused, reset, unusable.
    pub const OUTAGE: Self = Self::Outage(Outage::Failed);

    /// Every class, one per row of the table, outages by their first kind.
    pub const ALL: [Self; 8] = [
        Self::OUTAGE,
        Self::Answer,
        Self::Refusal,
        Self::Gone,
        Self::Busy,
        Self::Fault,
        Self::Local,
        Self::Cancelled,
    ];

    /// Returns the stable word of the row.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outage(_) => "outage",
            Self::Answer => "answer",
            Self::Refusal => "refusal",
            Self::Gone => "gone",
            Self::Busy => "busy",
            Self::Fault => "fault",
            Self::Local => "local",
            Self::Cancelled => "cancelled",
        }
    }

    /// Classifies a final HTTP status. Total: a status that HTTP does not know is a refusal by the dependency.
    ///
    /// The outage set is that of RFC 5861 §4: 500, 502, 503 and 504, nothing else.
    ///
    /// ```
    /// # use evenkeel_core as evenkeel;
    /// use evenkeel::{Class, Outage};
    /// assert_eq!(Class::of_status(503), Class::Outage(Outage::ErrorAnswer));
    /// assert_eq!(Class::of_status(501), Class::Refusal);
    /// assert_eq!(Class::of_status(404), Class::Gone);
    /// ```
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            200..=399 => Self::Answer,
            404 | 410 => Self::Gone,
            429 => Self::Busy,
            500 | 502 | 503 | 504 => Self::Outage(Outage::ErrorAnswer),
            _ => Self::Refusal,
        }
    }

    /// Returns this class's place in [`Class::ALL`]; every kind of outage has the same.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Outage(_) => 0,
            Self::Answer => 1,
            Self::Refusal => 2,
            Self::Gone => 3,
            Self::Busy => 4,
            Self::Fault => 5,
            Self::Local => 6,
            Self::Cancelled => 7,
        }
    }

    /// Returns the reason that a call carries when a result of this class made it leave the live rung.
    #[must_use]
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Outage(outage) => Some(outage.reason()),
            Self::Busy => Some(Reason::Busy),
            Self::Fault => Some(Reason::Fault),
            Self::Answer | Self::Refusal | Self::Gone | Self::Local | Self::Cancelled => None,
        }
    }
}

/// What a result does to the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Counts as a failure; fails a probe.
    Failure,
    /// Counts as a success; passes a probe.
    Success,
    /// Counts as nothing; a probe stays undecided and its place is freed.
    Neutral,
}

/// One row of the classification table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it does to the breaker.
    pub breaker: Verdict,
    /// Whether the call may go on to a lower rung. When not, the result itself is what the caller gets.
    pub lower_rung: bool,
}

/// The classification table of one dependency: total, printable, and the same for breaker and ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table([Row; 8]);

impl Default for Table {
    fn default() -> Self {
        let row = |breaker, lower_rung| Row { breaker, lower_rung };
        Self([
            row(Verdict::Failure, true),
            row(Verdict::Success, false),
            row(Verdict::Neutral, false),
            row(Verdict::Neutral, false),
            row(Verdict::Neutral, false),
            row(Verdict::Neutral, false),
            row(Verdict::Neutral, true),
            row(Verdict::Neutral, false),
        ])
    }
}

impl Table {
    /// Returns the row of a class.
    #[must_use]
    pub const fn row(&self, class: Class) -> Row {
        self.0[class.index()]
    }

    /// Replaces the row of a class. Which rows may change is checked with the rest of the contract, see
    /// [`Table::is_fixed`].
    pub const fn set(&mut self, class: Class, row: Row) {
        self.0[class.index()] = row;
    }

    /// Tells whether the row of a class is the same for everybody: a good answer, evenkeel's own refusals
    /// (which `when_busy` steers) and callers who left are nobody's to reinterpret, and a fault that used the
    /// ladder would hide a bug.
    #[must_use]
    pub const fn is_fixed(class: Class) -> bool {
        match class {
            Class::Answer | Class::Fault | Class::Local | Class::Cancelled => true,
            Class::Outage(_) | Class::Refusal | Class::Gone | Class::Busy => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class_and_only_four_are_outages() {
        let outages: alloc::vec::Vec<u16> = (0..=u16::MAX)
            .filter(|s| matches!(Class::of_status(*s), Class::Outage(_)))
            .collect();
        assert_eq!(outages, [500, 502, 503, 504]);
        assert_eq!(Class::of_status(0), Class::Refusal);
        assert_eq!(Class::of_status(999), Class::Refusal);
        let read_aloud = [400, 401, 403, 404, 408, 410, 429, 501].map(Class::of_status);
        let (refusal, gone) = (Class::Refusal, Class::Gone);
        assert_eq!(
            read_aloud,
            [
                refusal,
                refusal,
                refusal,
                gone,
                refusal,
                gone,
                Class::Busy,
                refusal
            ]
        );
        for status in [301, 304, 200, 204] {
            assert_eq!(Class::of_status(status), Class::Answer);
        }
    }

    #[test]
    fn the_default_table_is_the_one_of_the_design() {
        let printed: alloc::vec::Vec<_> = Class::ALL
            .into_iter()
            .map(|class| {
                let row = Table::default().row(class);
                (class.as_str(), row.breaker, row.lower_rung)
            })
            .collect();
        assert_eq!(
            printed,
            [
                ("outage", Verdict::Failure, true),
                ("answer", Verdict::Success, false),
                ("refusal", Verdict::Neutral, false),
                ("gone", Verdict::Neutral, false),
                ("busy", Verdict::Neutral, false),
                ("fault", Verdict::Neutral, false),
                ("local", Verdict::Neutral, true),
                ("cancelled", Verdict::Neutral, false),
            ]
        );
    }

    #[test]
    fn every_class_stands_at_its_own_index() {
        for (index, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index);
        }
    }

    #[test]
    fn every_kind_of_outage_reads_the_same_row() {
        let mut table = Table::default();
        let row = Row {
            breaker: Verdict::Neutral,
            lower_rung: false,
        };
        table.set(Class::Outage(Outage::Cut), row);
        for kind in [Outage::Failed, Outage::TimedOut, Outage::Cut, Outage::ErrorAnswer] {
            assert_eq!(table.row(Class::Outage(kind)), row);
        }
    }
}
