//! One daemon on every node: the command line.

mod args;
mod bench;
mod carried;
mod control;
mod control_plane;
mod controllers;
mod counts;
mod generate;
mod inprocess;
mod observe;
mod parts;
mod patience;
mod playground;
mod token_args;
mod verb;
mod why;

use std::process::ExitCode;

use kennel_agent::{cluster, descriptors, logging, memory, notify, signals};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|verb| verb == "shim") {
        // Becomes another program: nothing of this one is needed.
        return kennel_node::runtime::process::stage::main(words);
    }
    memory::small_pages();
    let args = args::Args::from_command_line();
    logging::start(args.log.as_deref().unwrap_or(args.verb.usual_log()));
    if let args::Verb::Agent(agent) = &args.verb
        && !agent.plays_many()
    {
        carried::become_agent(&agent.data_dir);
    }
    match verb::run(args) {
        Ok(code) => code,
        Err(error) => {
            logging::complain(&error);
            ExitCode::FAILURE
        }
    }
}
