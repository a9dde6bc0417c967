//! One module per verb that needs more than a call.

mod agent;
mod backup;
mod bench;
mod certs;
mod controller;
pub(crate) mod dashboard;
mod dns;
pub(crate) mod doctor;
mod migrate;
mod reset;
mod rollout;
mod server;
mod token;
mod up;
pub(crate) mod version;
mod why;

use std::process::ExitCode;

use crate::args::{Args, Verb};
use crate::generate;

/// Runs the verb and returns the exit code of the process.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut builder = if matches!(args.verb, Verb::Dashboard(_)) {
        // It waits most of the time, and each thread keeps memory of its own.
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    if matches!(args.verb, Verb::Agent(_)) {
        builder.worker_threads(kennel_agent::THREADS);
    }
    let reads_stdin = matches!(args.verb, Verb::Playground(_));
    let runtime = builder.enable_all().build()?;
    let code = runtime.block_on(async {
        match args.verb {
            Verb::Server(args) => server::run(*args).await,
            Verb::Up(args) => up::run(*args).await,
            Verb::Agent(args) if args.cleanup => return Ok(reset::run_agent(*args).await),
            Verb::Agent(args) => agent::run(*args).await,
            Verb::Token(args) => token::run(args).await,
            Verb::Certs(args) => certs::run(args).await,
            Verb::Controller(args) => controller::run(args).await,
            Verb::Dashboard(args) => dashboard::run(args).await,
            Verb::Dns(args) => dns::run(args).await,
            Verb::Bench(args) => bench::run(args).await,
            Verb::Completions(args) => generate::print(&args),
            Verb::Generate(args) => generate::run(&args),
            Verb::Version(args) => version::run(args).await,
            Verb::Playground(args) => kennel_playground::run(args).await,
            Verb::Backup(args) => backup::back_up(&args),
            Verb::Restore(args) => backup::restore(&args),
            Verb::Migrate(args) => migrate::run(&args).await,
            Verb::Doctor(args) => return Ok(doctor::run(&args).await),
            Verb::Reset(args) => return Ok(reset::run(args).await),
            Verb::Why(args) => return Ok(why::run(args).await),
            Verb::Rollout(args) => return Ok(rollout::run(args).await),
        }?;
        Ok(ExitCode::SUCCESS)
    });
    if reads_stdin {
        // A blocking read of the terminal cannot be cancelled, so do not wait for it.
        runtime.shutdown_background();
    }
    code
}
