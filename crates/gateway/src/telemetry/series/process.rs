//! Decides which series tell of the process itself.
//! It exists because these have the names that every program gives them, and not those of this one.
//! It refuses what the platform measures better: load of the machine, limits of containers.

use super::shape::{Series, counter, gauge};

pub(in crate::telemetry) const PROCESS_CPU: Series = counter(
    "process_cpu_seconds",
    &[],
    "Processor time that the process has used",
);
pub(in crate::telemetry) const PROCESS_MEMORY: Series = gauge(
    "process_resident_memory_bytes",
    &[],
    "Memory of the process that is in use",
);
pub(in crate::telemetry) const PROCESS_FILES: Series =
    gauge("process_open_fds", &[], "Open files and sockets");
pub(in crate::telemetry) const PROCESS_FILES_MAX: Series =
    gauge("process_max_fds", &[], "The most open files and sockets");
pub(in crate::telemetry) const PROCESS_START: Series = gauge(
    "process_start_time_seconds",
    &[],
    "When the gateway started, in Unix time",
);
