//! Development tasks, run as `cargo xtask <task>`. Tasks write only files of this repository.

mod bench_suite;
mod codegen;
mod fuzz;
mod package;
mod rollout_picture;
mod skew;

use std::env;

use anyhow::{Result, bail};

// The benchmark's client shares the machine with the server that it measures, so it should need little CPU.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: cargo xtask <task>
  codegen         generate the schema table from fields.json, and its descriptions
  picture         draw docs/rollout.svg from a release that goes back by itself, with the kennel beside
                  this program
  bench [PHASE…]  measure target/release/kennel against its bounds; phases: planner idle creates watches
                  latency slices rights apply openapi list full etcd cluster connections rollouts heartbeats
                  events agent services dashboard; not run by default: growth
  fuzz [--seconds N] [TARGET…]
                  look for new inputs with libFuzzer, and keep those that reach new code in fuzz/corpus
  package (deb | image)  build a Debian package or an OCI image of target/release/kennel
  skew --old PROGRAM  run a kennel of an earlier version beside this one: mixed agents and servers, and an upgrade";

fn main() -> Result<()> {
    let task = env::args().nth(1).unwrap_or_default();
    match task.as_str() {
        "codegen" => codegen::run(),
        "picture" => rollout_picture::run(),
        "planner" => bench_suite::planner::child(&env::args().skip(2).collect::<Vec<_>>()),
        "fuzz" => fuzz::run(&env::args().skip(2).collect::<Vec<_>>()),
        "package" => package::run(&env::args().skip(2).collect::<Vec<_>>()),
        "skew" => skew::run(&env::args().skip(2).collect::<Vec<_>>()),
        "bench" => bench_suite::run(&env::args().skip(2).collect::<Vec<_>>()),
        _ => bail!("{USAGE}"),
    }
}
