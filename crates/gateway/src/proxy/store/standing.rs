//! Decides since when a store is down, and from when on its disk does not keep up.
//! It exists because the store itself has no clock, and an operator asks for the time first.
//! It refuses to guess backwards: it is down since somebody looked and found it so, and somebody looks every second.

use std::time::Duration;

use evenkeel::Mono;

use super::Store;

/// A change that has waited longer to be written says that the disk does not keep up: a batch takes milliseconds.
pub(crate) const BEHIND: Duration = Duration::from_secs(10);

/// A store that is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Down {
    /// The word for why.
    pub(crate) why: &'static str,
    /// What the file system or the database said.
    pub(crate) detail: String,
    pub(crate) since: Mono,
}

impl Store {
    /// Looks whether it is down; `None` while it is up.
    pub(crate) fn is_down(&self) -> Option<Down> {
        let down = self.disk.down();
        let mut known = self.down_since.lock();
        let Some((why, detail)) = down else {
            *known = None;
            return None;
        };
        let since = *known.get_or_insert_with(|| self.engine.now().mono);
        Some(Down { why, detail, since })
    }
}
