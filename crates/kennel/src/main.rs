//! One daemon on every node: the command line.

mod args;
mod bench;
mod cluster;
mod control;
mod control_plane;
mod controllers;
mod counts;
mod descriptors;
mod generate;
mod inprocess;
mod logging;
mod memory;
mod node_args;
mod notify;
mod observe;
mod parts;
mod patience;
mod playground;
mod signals;
mod verb;
mod why;

use std::process::ExitCode;

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
    match verb::run(args) {
        Ok(code) => code,
        Err(error) => {
            logging::complain(&error);
            ExitCode::FAILURE
        }
    }
}
