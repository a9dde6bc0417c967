//! One file per verb.

mod bench;
mod controller;
pub(crate) mod dns;
pub(crate) mod server;
mod token;
mod up;
pub(crate) mod up_node;
mod why;

use std::process::ExitCode;

use crate::args::{Args, Verb};
use crate::{generate, playground};

/// Runs the verb that was asked for, and says how the program is to end.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if matches!(args.verb, Verb::Agent(_)) {
        builder.worker_threads(kennel_agent::THREADS);
    }
    let waits_for_enter = matches!(args.verb, Verb::Playground(_));
    let runtime = builder.enable_all().build()?;
    let code = runtime.block_on(async {
        match args.verb {
            Verb::Server(args) => server::run(args).await,
            Verb::Up(args) => up::run(*args).await,
            Verb::Agent(args) => kennel_agent::run(*args).await,
            Verb::Token(args) => token::run(args).await,
            Verb::Controller(args) => controller::run(args).await,
            Verb::Dns(args) => dns::run(args).await,
            Verb::Bench(args) => bench::run(args).await,
            Verb::Completions(args) => generate::print(&args),
            Verb::Generate(args) => generate::run(&args),
            Verb::Playground(args) => playground::run(args).await,
            Verb::Why(args) => return Ok(why::run(args).await),
        }?;
        Ok(ExitCode::SUCCESS)
    });
    if waits_for_enter {
        // Nobody presses it any more.
        runtime.shutdown_background();
    }
    code
}
