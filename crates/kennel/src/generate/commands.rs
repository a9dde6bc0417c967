//! The reference page of commands and flags, from the definition of the command line.

use std::fmt::Write as _;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};

use super::markdown::{cell, prose};

const HEAD: &str = "# Commands

The verbs and flags of `kennel`, as `kennel help VERB` shows them. A flag takes precedence over its environment
variable.
";

pub(super) fn page(mut kennel: Command) -> String {
    kennel = kennel.disable_help_subcommand(true);
    kennel.build();
    let mut out = HEAD.to_owned();
    out.push_str("\n| Verb | |\n|---|---|\n");
    for verb in verbs(&kennel) {
        let (name, about) = (verb.get_name(), about(verb));
        let _ = writeln!(out, "| [`{name}`](#kennel-{name}) | {} |", cell(&about));
    }
    out.push_str("\n## Every verb\n");
    write_args(&mut out, kennel.get_arguments());
    for verb in verbs(&kennel) {
        write_verb(&mut out, verb, &format!("kennel {}", verb.get_name()), 2);
    }
    out
}

/// The verbs that are not hidden.
fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn about(verb: &Command) -> String {
    verb.get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn write_verb(out: &mut String, verb: &Command, name: &str, depth: usize) {
    let text = verb.get_long_about().or_else(|| verb.get_about());
    let text = text.map(ToString::to_string).unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = write!(out, "\n{} {name}\n\n{}", "#".repeat(depth), prose(&text));
    let usage = verb.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(out, "\n```text\n{usage}\n```\n");
    write_args(out, verb.get_arguments().filter(|arg| !arg.is_global_set()));
    let inherited = verb.get_arguments().filter(|arg| arg.is_global_set());
    if verbs(verb).next().is_some() {
        // The flags of all subcommands are listed once, here.
        write_args(out, inherited.filter(|arg| arg.get_id() != "log"));
    }
    for inner in verbs(verb) {
        write_verb(
            out,
            inner,
            &format!("{name} {}", inner.get_name()),
            depth + 1,
        );
    }
}

/// Appends a table of flags per heading, in the order of `--help`.
fn write_args<'a>(out: &mut String, args: impl Iterator<Item = &'a Arg>) {
    let is_builtin = |arg: &Arg| matches!(arg.get_id().as_str(), "help" | "version");
    let args: Vec<&Arg> = args
        .filter(|arg| !arg.is_hide_set() && !is_builtin(arg))
        .collect();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in &args {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        if let Some(heading) = heading {
            let _ = write!(out, "\n**{heading}**\n");
        }
        out.push_str("\n| Flag | Default | |\n|---|---|---|\n");
        for arg in args.iter().filter(|arg| arg.get_help_heading() == heading) {
            write_arg(out, arg);
        }
    }
}

fn write_arg(out: &mut String, arg: &Arg) {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let (help, described) = described_default(&help);
    let mut text = help.to_owned();
    for value in arg.get_possible_values() {
        let _ = write!(text, "\n\n{}", possible(&value));
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(text, "\n\nVariable: `{}`", variable.to_string_lossy());
    }
    let name = cell(&format!("`{}`", spelling(arg)));
    let default = default(arg).or(described).map(|default| cell(&default));
    let default = default.unwrap_or_default();
    let _ = writeln!(out, "| {name} | {default} | {} |", cell(&text));
}

/// Splits off a default that the help text describes: `[default: …]` at its end.
fn described_default(help: &str) -> (&str, Option<String>) {
    let inner = help.strip_suffix(']');
    match inner.and_then(|inner| inner.rsplit_once("[default: ")) {
        Some((help, default)) => (help.trim_end(), Some(default.to_owned())),
        None => (help, None),
    }
}

fn possible(value: &PossibleValue) -> String {
    match value.get_help() {
        Some(help) => format!("`{}`: {help}", value.get_name()),
        None => format!("`{}`", value.get_name()),
    }
}

fn spelling(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let mut words = Vec::new();
    if !names.is_empty() {
        words.push(names.join(", "));
    }
    if arg.get_action().takes_values() {
        words.extend(values);
    }
    words.join(" ")
}

fn default(arg: &Arg) -> Option<String> {
    if !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) {
        return None;
    }
    let values = arg.get_default_values().iter();
    let values: Vec<String> = values.map(|v| v.to_string_lossy().into_owned()).collect();
    let values = values.join(",");
    (!values.is_empty()).then(|| format!("`{values}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_their_defaults_and_variables() {
        let arg = |arg: Arg| Command::new("kennel").arg(arg);
        let check = |command: Command, line: &str| {
            let page = page(command);
            assert!(page.lines().any(|one| one == line), "{line} in\n{page}");
        };
        let place = Arg::new("place")
            .long("place")
            .value_name("DIR")
            .help("Where");
        check(
            arg(place.default_value("here").env("PLACE")),
            "| `--place DIR` | `here` | Where<br>Variable: `PLACE` |",
        );
        let seen = Arg::new("seen").long("seen").value_name("N");
        check(
            arg(seen.help("How many\n[default: as many as there are]")),
            "| `--seen N` | as many as there are | How many |",
        );
        let loud = Arg::new("loud").short('l').long("loud").help("Shout");
        check(
            arg(loud.action(ArgAction::SetTrue)),
            "| `-l, --loud` |  | Shout |",
        );
    }
}
