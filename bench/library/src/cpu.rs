//! Decides which CPU a thread runs on, and how much of its time a thread has used.
//! It exists because wall time also counts whatever else the machine was doing.
//! It refuses to fail: on a machine with one CPU both threads share it, and the table says nothing of the kind.

use rustix::{
    thread::{CpuSet, sched_setaffinity},
    time::{ClockId, clock_gettime},
};

/// Keeps the calling thread on one CPU, as far as the system lets it.
pub(crate) fn pin(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    // Without the right to pin, or without that CPU, the figures are noisier and still right.
    sched_setaffinity(None, &only).ok();
}

/// Returns the CPU time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_nanos() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 * 1e9 + used.tv_nsec as f64
}
