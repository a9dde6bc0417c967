//! One file per verb.

mod agent;
mod bench;
mod controller;
mod dns;
mod server;
mod up;

use crate::args::{Args, Verb};

/// Runs the verb that was asked for.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match args.verb {
            Verb::Server(args) => server::run(args).await,
            Verb::Up(args) => up::run(args).await,
            Verb::Agent(args) => agent::run(args).await,
            Verb::Controller(args) => controller::run(args).await,
            Verb::Dns(args) => dns::run(args).await,
            Verb::Bench(args) => bench::run(args).await,
        }
    })
}
