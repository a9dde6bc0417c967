//! Commands within containers.

use std::time::Duration;

use serde_json::Value;

use super::{Target, Unwell};
use crate::runtime::Error;

/// How much of what a command says is told.
const TOLD: usize = 10 << 10;

/// A probe by command: it passes if the command returns 0.
pub(super) async fn ask(
    target: &Target<'_>,
    action: &Value,
    timeout: Duration,
) -> Result<(), Unwell> {
    let command = command(action);
    let asked = target.runtime.exec(target.id, &command, timeout);
    // A runtime that does not keep to the time must not hold up the next question.
    let Ok(answer) = tokio::time::timeout(timeout + Duration::from_secs(1), asked).await else {
        return Err(Unwell::Failed(timed_out(&command)));
    };
    match answer {
        Ok(output) if output.code == 0 => Ok(()),
        Ok(output) => Err(Unwell::Failed(text(&output.text))),
        Err(Error::TimedOut(_)) => Err(Unwell::Failed(timed_out(&command))),
        Err(error) => Err(Unwell::Unknown(error.to_string())),
    }
}

/// The words of a command, from the action of a spec.
pub(super) fn command(action: &Value) -> Vec<String> {
    let words = action["command"].as_array().into_iter().flatten();
    words
        .map(|word| word.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// What a command has said, cut to what is told.
pub(super) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..TOLD).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

fn timed_out(command: &[String]) -> String {
    format!("command {:?} timed out", command.join(" "))
}
