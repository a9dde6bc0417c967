//! Logs go to stderr; data goes to stdout.

use std::io::{IsTerminal as _, Write as _};

use clap::ValueEnum;
use kennel_client::connection;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub const DEFAULT_FILTER: &str = "info";

/// Why the value of `--log` is invalid.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error(
        "{0} is not a level: use error, warn, info, debug or trace, or a filter such as kennel::request=debug"
    )]
    Level(String),
    #[error("it is not a filter such as info or warn,kennel::request=debug: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
}

/// Checks the value of `--log`.
pub fn filter(text: &str) -> Result<String, FilterError> {
    let is_name = |part: &str| {
        let is_level = part.parse::<LevelFilter>().is_ok();
        let in_name = |one: char| one.is_alphanumeric() || "_-:".contains(one);
        !is_level && part.chars().all(in_name)
    };
    let parts = text.split(',').map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    // A name without a level would silence everything else: it is more often a typing error.
    if let Some(name) = parts.iter().find(|part| is_name(part)) {
        return Err(FilterError::Level((*name).to_owned()));
    }
    let text = parts.join(",");
    EnvFilter::builder().parse(&text)?;
    Ok(text)
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people: time, level, origin, message, fields
    #[default]
    Text,
    /// One JSON object per line: timestamp, level, target, message, and a member for each field
    Json,
}

pub fn start(filter: &str, format: LogFormat) {
    let filter = without_client_errors(EnvFilter::builder().parse_lossy(filter));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        // Errors about a closed stderr would go to stderr and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}

/// Leaves out the errors that `kube` logs for every failed request, unless the filter asks for details: the callers log
/// or print them with what to check.
fn without_client_errors(filter: EnvFilter) -> EnvFilter {
    let is_detailed = filter.max_level_hint() > Some(LevelFilter::INFO);
    match "kube_client::client=off".parse() {
        Ok(directive) if !is_detailed => filter.add_directive(directive),
        _ => filter,
    }
}

/// Prints an error with its causes.
pub fn print_error(error: &anyhow::Error) {
    let mut stderr = std::io::stderr().lock();
    for (at, text) in texts(error).iter().enumerate() {
        let prefix = if at == 0 { "error" } else { "  because" };
        // If stderr is closed, the exit code is all that is left.
        let _ignored = writeln!(stderr, "{prefix}: {text}");
    }
}

/// The texts of an error and its causes, without those that the text before them ends with.
fn texts(error: &anyhow::Error) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = match cause.downcast_ref::<kube::Error>() {
            Some(error) => connection::describe(error),
            None => cause.to_string(),
        };
        if !texts.last().is_some_and(|shown| shown.ends_with(&text)) {
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn filters_are_levels_or_names_with_levels() {
        for right in [
            "info",
            "WARN",
            "off",
            "warn,kennel::request=debug",
            "kennel_node=trace, info",
            "kennel::request=debug",
        ] {
            assert_eq!(filter(right).unwrap(), right.replace(' ', ""));
        }
        for (wrong, words) in [
            ("verbose", "verbose is not a level"),
            ("kennel=loud", "it is not a filter such as info"),
            ("info,chatty", "chatty is not a level"),
            ("==", "it is not a filter such as info"),
        ] {
            let error = filter(wrong).unwrap_err().to_string();
            assert!(error.starts_with(words), "{wrong}: {error}");
        }
    }

    #[test]
    fn causes_that_were_shown_are_not_repeated() {
        let check = |error: anyhow::Error, expected: &[&str]| assert_eq!(texts(&error), expected);
        check(anyhow!("b").context("a"), &["a", "b"]);
        check(anyhow!("b").context("a: b").context("c"), &["c", "a: b"]);
        check(anyhow!("b").context("a: b"), &["a: b"]);
        let service = || anyhow::Error::from(kube::Error::Service("refused".into()));
        check(service(), &["refused"]);
        check(service().context("c"), &["c", "refused"]);
    }
}
