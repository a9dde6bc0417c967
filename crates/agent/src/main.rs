//! The agent alone, as small as it gets. It is not installed: `kennel` carries it, and becomes it for `kennel agent`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kennel_agent::args::AgentArgs;
use kennel_agent::{THREADS, logging, memory};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The part of kennel's command line that is the agent's.
#[derive(Debug, Parser)]
#[command(name = "kennel", version)]
struct Args {
    /// What to log
    #[arg(long, global = true, env = "KENNEL_LOG", value_name = "FILTER")]
    log: Option<String>,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make this machine a node
    Agent(Box<AgentArgs>),
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|verb| verb == "shim") {
        // Becomes another program: nothing of this one is needed.
        return kennel_node::runtime::process::container_init::main(words);
    }
    memory::small_pages();
    let args = Args::parse();
    logging::start(args.log.as_deref().unwrap_or(logging::USUAL));
    match run(args.verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(Verb::Agent(args): Verb) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(THREADS).enable_all().build()?;
    runtime.block_on(kennel_agent::run(*args))
}
