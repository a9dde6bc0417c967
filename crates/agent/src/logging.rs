//! Logs go to stderr; data goes to stdout.

use std::io::{IsTerminal as _, Write as _};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

pub const DEFAULT_FILTER: &str = "info";

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
    let filter = EnvFilter::builder().parse_lossy(filter);
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

/// Prints an error with its causes.
pub fn print_error(error: &anyhow::Error) {
    let mut stderr = std::io::stderr().lock();
    // If stderr is closed, the exit code is all that is left.
    let _ignored = writeln!(stderr, "error: {error}");
    for cause in error.chain().skip(1) {
        let _ignored = writeln!(stderr, "  because: {cause}");
    }
}
