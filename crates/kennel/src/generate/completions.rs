//! Shell completion scripts.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args as ClapArgs, Command, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Args;

/// The shells whose completions are packaged.
const PACKAGED: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

pub(crate) fn print(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut without_hidden(&Args::command()),
        "kennel",
        &mut script,
    );
    match std::io::stdout().write_all(&script) {
        // As with `| head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print the completions"),
    }
}

/// Writes a file per shell, with the name that the shell expects.
pub(super) fn write_all(dir: &Path) -> Result<()> {
    for shell in PACKAGED {
        clap_complete::generate_to(shell, &mut without_hidden(&Args::command()), "kennel", dir)
            .with_context(|| format!("cannot write completions into {}", dir.display()))?;
    }
    Ok(())
}

/// The command without hidden flags and verbs, which `clap_complete` would offer.
fn without_hidden(command: &Command) -> Command {
    let mut bare = Command::new(command.get_name().to_owned());
    if let Some(about) = command.get_about() {
        bare = bare.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        bare = bare.version(version.to_owned());
    }
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let args: Vec<_> = args.cloned().collect();
    // Flags can require a group.
    let groups = command.get_groups().map(|group| {
        let members = group.get_args();
        let shown = members.filter(|member| args.iter().any(|arg| arg.get_id() == *member));
        ArgGroup::new(group.get_id().clone()).args(shown.cloned())
    });
    let groups: Vec<_> = groups.collect();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    bare.args(args)
        .groups(groups)
        .subcommands(verbs.map(without_hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_flags_are_not_offered() {
        for shell in PACKAGED {
            let mut script = Vec::new();
            clap_complete::generate(
                shell,
                &mut without_hidden(&Args::command()),
                "kennel",
                &mut script,
            );
            let script = String::from_utf8(script).unwrap();
            for (word, offered) in [
                ("data-dir", true),
                ("taint-control-plane", true),
                ("completions", true),
                ("patience-seconds", false),
                ("generate", false),
            ] {
                assert_eq!(script.contains(word), offered, "{shell}: {word}");
            }
        }
    }
}
