//! The origin of the benchmark: 1 KiB of JSON on one port, faults and counters on another.
//!
//! It exists so that every gateway asks the same thing for the same bytes. It refuses to
//! be more than that; see the library's `origin` for what it does.

use std::io;
use std::rc::Rc;

use gateway_bench_tools::origin::{Origin, serve_control, serve_data};
use gateway_bench_tools::start::{on_one_thread, two_addresses};

fn main() -> io::Result<()> {
    let [data, control] = two_addresses("origin DATA CONTROL")?;
    on_one_thread(async {
        let origin = Origin::new();
        tokio::select! {
            ended = serve_data(Rc::clone(&origin), data) => ended,
            ended = serve_control(origin, control) => ended,
        }
    })
}
