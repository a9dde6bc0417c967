//! What is written from the program itself: its reference, its man pages, completions for shells.
//!
//! Everything here reads the tables and the command line that the program works with; nothing is said twice.
//! It writes files into the directory it is given and nothing else.

mod commands;
mod completions;
mod errors;
mod events;
mod man;
mod markdown;
mod metrics;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args as ClapArgs, CommandFactory as _, ValueEnum};

use crate::args::Args;

pub(crate) use completions::{CompletionsArgs, print};

/// The first line of every generated page.
const MARK: &str =
    "<!-- Written by `kennel generate reference`; change the program, not this page. -->";

/// What to write, and where.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct GenerateArgs {
    /// What to write
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: What,

    /// The directory to write it into; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// The pages of docs/reference that are made from the program
    Reference,
    /// A man page for kennel and one for each verb
    Man,
    /// Completions for bash, zsh and fish
    Completions,
}

/// Writes what was asked for.
pub(crate) fn run(args: &GenerateArgs) -> Result<()> {
    let dir = &args.out;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    match args.what {
        What::Reference => {
            for (name, page) in pages() {
                write(dir, name, &page)?;
            }
            Ok(())
        }
        What::Man => man::write_all(dir),
        What::Completions => completions::write_all(dir),
    }
}

/// The pages of the reference: file names, and what is in them.
fn pages() -> Vec<(&'static str, String)> {
    let page = |text: String| format!("{MARK}\n\n{text}");
    vec![
        ("commands.md", page(commands::page(Args::command()))),
        ("metrics.md", page(metrics::page())),
        ("events.md", page(events::page())),
        ("errors.md", page(errors::page())),
    ]
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
