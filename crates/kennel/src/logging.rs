//! Logs go to stderr; data goes to stdout.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts logging. Without a filter: what people want to see of a server.
pub(crate) fn start(filter: Option<&str>) {
    let filter = EnvFilter::builder().parse_lossy(filter.unwrap_or("info"));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .init();
}

/// Tells why the program ends, with all its reasons.
#[expect(clippy::print_stderr, reason = "the last words of the program")]
pub(crate) fn complain(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
