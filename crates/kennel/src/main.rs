//! The `kennel` binary: parses the command line and runs one verb.

mod admin_args;
mod args;
mod backup_args;
mod bench;
mod certs_args;
mod check_flags;
mod dns_args;
mod election_flags;
mod embedded_agent;
mod eviction_flags;
mod generate;
mod inspect;
mod metrics_server;
mod migrate_args;
mod network_flags;
mod purge_delay;
mod reset;
mod rollout;
mod store_args;
mod token_args;
mod verb;
mod why;

use std::process::ExitCode;

use kennel_agent::{cluster, logging, memory, signals};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|verb| verb == "shim") {
        return kennel_node::runtime::process::container_init::main(arguments);
    }
    memory::disable_huge_pages();
    let args = args::Args::from_command_line();
    logging::start(
        args.log
            .as_deref()
            .unwrap_or(args.verb.default_log_filter()),
        args.log_format,
    );
    if let args::Verb::Agent(agent) = &args.verb
        && !agent.simulates_nodes()
        && !agent.cleanup
    {
        if let Err(error) = kennel_agent::check(agent) {
            logging::print_error(&error);
            return ExitCode::FAILURE;
        }
        embedded_agent::exec(&agent.data_dir);
    }
    if matches!(args.verb, args::Verb::Dashboard(_)) {
        // It reads lists of thousands of objects, and all nodes each second of a rollout: what that frees would stay.
        purge_delay::exec_without_delay();
    }
    match verb::run(args) {
        Ok(code) => code,
        Err(error) => {
            logging::print_error(&error);
            ExitCode::FAILURE
        }
    }
}
