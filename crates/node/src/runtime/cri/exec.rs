//! Commands in containers.

use std::time::Duration;

use super::api;
use super::line::Line;
use crate::runtime::{Attachment, Error, Output, Result};

/// What a runtime takes to give up on a command whose time is over.
const GIVING_UP: Duration = Duration::from_secs(10);

/// Runs a command and waits for it, no longer than it is given.
pub(super) async fn and_wait(
    line: &Line,
    id: &str,
    command: &[String],
    timeout: Duration,
) -> Result<Output> {
    // Whole seconds, never fewer than were given; none means for ever.
    let seconds = timeout.as_millis().div_ceil(1000).max(1);
    let request = api::ExecSyncRequest {
        container_id: id.to_owned(),
        cmd: command.to_vec(),
        timeout: i64::try_from(seconds).unwrap_or(i64::MAX),
    };
    // Less than a second is our own to measure; the runtime ends the command when its time is over, too.
    let fraction = !timeout.as_millis().is_multiple_of(1000);
    let limit = if fraction {
        timeout
    } else {
        timeout.saturating_add(GIVING_UP)
    };
    let too_long = || Error::TimedOut(format!("command {:?} timed out", command.join(" ")));
    let Ok(answer) = tokio::time::timeout(limit, line.ask_plainly(request)).await else {
        return Err(too_long());
    };
    let answer = answer.map_err(|status| match line.sort(&status) {
        Error::TimedOut(_) => too_long(),
        Error::Failed(message) if message.contains("context deadline exceeded") => too_long(),
        error => error,
    })?;
    let mut text = answer.stdout;
    text.extend_from_slice(&answer.stderr);
    Ok(Output {
        code: answer.exit_code,
        text,
    })
}

/// Streams that a runtime accepts: with a terminal, errors go where the output goes.
pub(super) fn sound(streams: Attachment) -> Attachment {
    Attachment {
        stderr: streams.stderr && !streams.tty,
        ..streams
    }
}
