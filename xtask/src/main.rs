//! Tasks of the repository, run as `cargo xtask <task>`.
//!
//! Nothing here is shipped; a task reads and writes files of this repository and nothing else.

mod bench_suite;
mod codegen;
mod package;
mod picture;

use std::env;

use anyhow::{Result, bail};

// The benchmark's client shares the machine with the server it measures: it should cost little.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: cargo xtask <task>
  codegen         write the schema table from its facts
  picture         draw docs/rollout.svg from a rolling update by the kennel beside this program
  bench [PHASE…]  measure target/release/kennel; phases: planner idle creates watches latency rights list
                  full cluster heartbeats agent; by its name only: growth
  package (deb | image)  a Debian package or an OCI image of target/release/kennel";

fn main() -> Result<()> {
    let task = env::args().nth(1).unwrap_or_default();
    match task.as_str() {
        "codegen" => codegen::run(),
        "picture" => picture::run(),
        "events" => {
            let number = |at| env::args().nth(at).and_then(|text| text.parse().ok());
            bench_suite::planner::events(number(2).unwrap_or(1_000), number(3).unwrap_or(1_000));
            Ok(())
        }
        "package" => package::run(&env::args().skip(2).collect::<Vec<_>>()),
        "bench" => bench_suite::run(&env::args().skip(2).collect::<Vec<_>>()),
        _ => bail!("{USAGE}"),
    }
}
