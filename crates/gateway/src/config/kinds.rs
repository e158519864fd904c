//! Decides which kinds of values a key can take, as far as one kind is told from another.
//! It exists so that what a key is read as can be asked: by the schema, and where a value is of the wrong kind.
//! It refuses nothing by itself.

use toml::de::DeValue;

use super::units;

/// What a key is read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A duration, longer than zero.
    Duration,
    /// A size of so many bytes.
    Size {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A share.
    Share,
    /// An integer.
    Integer {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Word(Vec<String>),
    /// A list of texts.
    Texts,
    /// A list of integers, not empty.
    Integers {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
}

/// How a value misses a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// It is of another kind.
    Type,
    /// It is of this kind, and outside its range.
    Range,
    /// It is nothing that is allowed.
    Value,
}

impl Kind {
    /// Returns how a value that was refused misses this kind.
    pub(super) fn miss(&self, value: &DeValue<'_>) -> Miss {
        let all = |fits: fn(&DeValue<'_>) -> bool| {
            let items = value.as_array();
            items.is_some_and(|items| items.iter().all(|item| fits(item.get_ref())))
        };
        let (is_its_type, is_ranged) = match self {
            Self::Text | Self::Duration | Self::Share | Self::Word(_) => (value.is_str(), false),
            Self::Size { .. } => (
                value.is_str(),
                value.as_str().is_some_and(|text| units::size(text).is_some()),
            ),
            Self::Integer { .. } => (value.is_integer(), true),
            Self::Boolean => (value.is_bool(), false),
            Self::Texts => (all(|item| item.is_str()), false),
            Self::Integers { .. } => (all(|item| item.is_integer()), true),
        };
        match (is_its_type, is_ranged) {
            (false, _) => Miss::Type,
            (true, true) => Miss::Range,
            (true, false) => Miss::Value,
        }
    }
}
