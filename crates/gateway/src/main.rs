//! The `evenkeel` program; everything is in the library beside it.

use std::process::ExitCode;

/// A request allocates some dozens of times, mostly inside the HTTP library; this allocator does that for less.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    evenkeel_gateway::cli::run(std::env::args_os())
}
