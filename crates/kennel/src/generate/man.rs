//! Man pages: one for the program and one per verb.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::Args;

/// The footer of every page.
const SOURCE: &str = concat!("kennel ", env!("CARGO_PKG_VERSION"));

pub(super) fn write_all(dir: &Path) -> Result<()> {
    let mut kennel = Args::command().disable_help_subcommand(true);
    kennel.build();
    write(&kennel, dir)
}

fn write(command: &Command, dir: &Path) -> Result<()> {
    let page = Man::new(command.clone()).source(SOURCE).manual("Kennel");
    page.generate_to(dir)
        .with_context(|| format!("cannot write man pages into {}", dir.display()))?;
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    for verb in verbs {
        write(verb, dir)?;
    }
    Ok(())
}
