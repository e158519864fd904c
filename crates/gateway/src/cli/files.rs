//! Decides how many connections of clients fit into the open files that the system allows.
//! It exists because connections beyond that starve the attempts, the metrics and the log of the same process.
//! It refuses to change what the operator has set as the most: only the lower, soft limit is raised to it.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::proxy::Limits;

/// Raises the soft limit of open files as far as the system allows, and lowers the most connections to a third of
/// it: a third is for attempts, one of each connection at most, and a third for idle connections and all else.
pub(super) fn fit(limits: Limits) -> Limits {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Without the right to raise it, what is allowed already is what there is.
        if setrlimit(Resource::Nofile, raised(limit)).is_ok() {
            limit = getrlimit(Resource::Nofile);
        }
    }
    Limits {
        connections: fitting(limits.connections, limit.current),
        ..limits
    }
}

const fn raised(mut limit: rustix::process::Rlimit) -> rustix::process::Rlimit {
    limit.current = limit.maximum;
    limit
}

/// Returns how many connections fit into so many files; `None` means that files are not limited.
fn fitting(connections: usize, files: Option<u64>) -> usize {
    let third = files.map_or(u64::MAX, |files| files / 3);
    connections
        .min(usize::try_from(third).unwrap_or(usize::MAX))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_a_third_of_the_files_and_never_all() {
        assert_eq!(fitting(10_000, None), 10_000);
        assert_eq!(fitting(10_000, Some(1 << 20)), 10_000);
        assert_eq!(fitting(10_000, Some(1024)), 341);
        assert_eq!(fitting(10_000, Some(2)), 1);
    }
}
