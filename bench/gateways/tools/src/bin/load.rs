//! The load of the rows that count single requests; prints one line of JSON.
//!
//! It exists because wrk asks one key again and again. It refuses to be more than that; see the
//! library's `load` for what it does.

use std::io::{self, Write as _};

use gateway_bench_tools::load::each::{Burst, Each};
use gateway_bench_tools::load::open::Open;
use gateway_bench_tools::load::options::Options;
use gateway_bench_tools::start::{invalid, on_one_thread};

const USAGE: &str = "load {each,burst,open} name=value ...";

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let kind = words.next().unwrap_or_default();
    let mut options = Options::read(words)?;
    on_one_thread(async {
        let told = match kind.as_str() {
            "each" => {
                let each = Each::take(&mut options)?;
                options.end()?;
                each.run().await?.json()
            }
            "burst" => {
                let burst = Burst::take(&mut options)?;
                options.end()?;
                burst.run().await?.json()
            }
            "open" => {
                let open = Open::take(&mut options)?;
                options.end()?;
                let (started_ms, counts) = open.run().await;
                counts.json(started_ms)
            }
            _ => return Err(invalid(format!("argument {kind:?}; usage: {USAGE}"))),
        };
        writeln!(io::stdout(), "{told}")
    })
}
