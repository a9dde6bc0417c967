//! Commands in containers.

use std::time::Duration;

use serde_json::Value;

use super::{ProbeError, Target};
use crate::json::texts;
use crate::runtime::Error;

/// How much of a command's output errors hold.
const MAX_OUTPUT_BYTES: usize = 10 << 10;
/// How much longer than its timeout a probe waits for a runtime that does not enforce it.
const RUNTIME_TIMEOUT_MARGIN: Duration = Duration::from_secs(1);

/// Succeeds if the command exits with 0.
pub(super) async fn probe(
    target: &Target<'_>,
    action: &Value,
    timeout: Duration,
) -> Result<(), ProbeError> {
    let command = command(action);
    let exec = target.runtime.exec(target.id, &command, timeout);
    let Ok(result) = tokio::time::timeout(timeout + RUNTIME_TIMEOUT_MARGIN, exec).await else {
        return Err(ProbeError::Failed(timed_out(&command)));
    };
    match result {
        Ok(output) if output.code == 0 => Ok(()),
        Ok(output) => Err(ProbeError::Failed(text(&output.text))),
        Err(Error::TimedOut(_)) => Err(ProbeError::Failed(timed_out(&command))),
        Err(error) => Err(ProbeError::Unknown(error.to_string())),
    }
}

pub(super) fn command(action: &Value) -> Vec<String> {
    texts(action, "command")
}

/// A command's output, truncated.
pub(super) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..MAX_OUTPUT_BYTES).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

fn timed_out(command: &[String]) -> String {
    format!("command {:?} timed out", command.join(" "))
}
