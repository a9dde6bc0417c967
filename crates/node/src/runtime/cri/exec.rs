//! Executes commands in containers.

use std::time::Duration;

use super::api;
use super::connection::Connection;
use crate::runtime::{Attachment, Error, Output, Result};

/// Time for the runtime to report that a command has timed out.
const TIMEOUT_GRACE: Duration = Duration::from_secs(10);

/// Runs a command and waits for its exit, until the timeout.
pub(super) async fn run(
    connection: &Connection,
    id: &str,
    command: &[String],
    timeout: Duration,
) -> Result<Output> {
    // Rounded up to whole seconds; 0 would mean no timeout.
    let seconds = timeout.as_millis().div_ceil(1000).max(1);
    let request = api::ExecSyncRequest {
        container_id: id.to_owned(),
        cmd: command.to_vec(),
        timeout: i64::try_from(seconds).unwrap_or(i64::MAX),
    };
    // We measure fractions of a second ourselves; the runtime kills the command after whole seconds.
    let fraction = !timeout.as_millis().is_multiple_of(1000);
    let limit = if fraction {
        timeout
    } else {
        timeout.saturating_add(TIMEOUT_GRACE)
    };
    let timed_out = || Error::TimedOut(format!("command {:?} timed out", command.join(" ")));
    let Ok(response) = tokio::time::timeout(limit, connection.call_once(request)).await else {
        return Err(timed_out());
    };
    let response = response.map_err(|status| match connection.classify(&status) {
        Error::TimedOut(_) => timed_out(),
        Error::Failed(message) if message.contains("context deadline exceeded") => timed_out(),
        error => error,
    })?;
    let mut text = response.stdout;
    text.extend_from_slice(&response.stderr);
    Ok(Output {
        code: response.exit_code,
        text,
    })
}

/// Runtimes refuse stderr with a terminal, which merges it into stdout.
pub(super) fn without_tty_stderr(streams: Attachment) -> Attachment {
    Attachment {
        stderr: streams.stderr && !streams.tty,
        ..streams
    }
}
