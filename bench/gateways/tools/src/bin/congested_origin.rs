//! The origin of the recovery rows: it slows down under load, and can be silent for a while.
//!
//! It exists so that every gateway meets the same overload. It refuses to be more than that;
//! see the library's `congested` for what it does.

use std::io;
use std::time::Duration;

use gateway_bench_tools::congested::{Capacity, Congested, serve_control, serve_data};
use gateway_bench_tools::start::{invalid, on_one_thread};

const USAGE: &str = "congested_origin DATA CONTROL AT_ONCE MILLIS";

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, control, at_once, millis] = arguments.as_slice() else {
        return Err(invalid(format!(
            "{} arguments, want 4; usage: {USAGE}",
            arguments.len()
        )));
    };
    let wrong = |seen: &str| invalid(format!("argument {seen:?}; usage: {USAGE}"));
    let data = data.parse().map_err(|_| wrong(data))?;
    let control = control.parse().map_err(|_| wrong(control))?;
    let capacity = Capacity {
        at_once: at_once
            .parse()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| wrong(at_once))?,
        takes: Duration::from_millis(millis.parse().map_err(|_| wrong(millis))?),
    };
    on_one_thread(async {
        let origin = Congested::new(capacity);
        tokio::select! {
            ended = serve_data(origin.clone(), data) => ended,
            ended = serve_control(origin, control) => ended,
        }
    })
}
