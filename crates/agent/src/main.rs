//! The agent alone. It is not installed: `kennel` embeds it, and executes it for `kennel agent`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kennel_agent::args::AgentArgs;
use kennel_agent::logging::LogFormat;
use kennel_agent::{THREADS, logging, memory};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The agent's part of kennel's command line.
#[derive(Debug, Parser)]
#[command(name = "kennel", version)]
struct Args {
    /// What to log
    #[arg(long, global = true, env = "KENNEL_LOG", value_name = "FILTER", value_parser = logging::filter)]
    log: Option<String>,

    /// Format of log lines on stderr
    #[arg(
        long,
        global = true,
        env = "KENNEL_LOG_FORMAT",
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    log_format: LogFormat,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make this machine a node
    Agent(Box<AgentArgs>),
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|verb| verb == "shim") {
        // The shim executes another program: it needs no logging and no runtime.
        return kennel_node::runtime::process::container_init::main(args);
    }
    memory::disable_huge_pages();
    let args = Args::parse();
    logging::start(
        args.log.as_deref().unwrap_or(logging::DEFAULT_FILTER),
        args.log_format,
    );
    match run(args.verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::print_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(Verb::Agent(args): Verb) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(THREADS).enable_all().build()?;
    runtime.block_on(kennel_agent::run(*args))
}
