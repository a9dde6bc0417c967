//! Logs go to stderr; data goes to stdout.

use std::io::{IsTerminal as _, Write as _};

use tracing_subscriber::EnvFilter;

/// What people want to see of a server.
pub const USUAL: &str = "info";

/// Starts logging what the filter lets through.
pub fn start(filter: &str) {
    let filter = EnvFilter::builder().parse_lossy(filter);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        // Complaints about a stderr that is gone would go to stderr, and end what it was said for.
        .log_internal_errors(false)
        .init();
}

/// Tells why the program ends, with all its reasons.
pub fn complain(error: &anyhow::Error) {
    let mut stderr = std::io::stderr().lock();
    // Where nobody listens any more, the exit code has to say it.
    let _unheard = writeln!(stderr, "error: {error}");
    for cause in error.chain().skip(1) {
        let _unheard = writeln!(stderr, "  because: {cause}");
    }
}
