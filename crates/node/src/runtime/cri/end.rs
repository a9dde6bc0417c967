//! Ending containers, with the signal that their specs name.

use std::time::Duration;

use super::api;
use super::line::Line;
use crate::runtime::{Error, Result, signals};

/// Asks a container to end with the image's signal, and kills it after the grace. Fine if it is gone.
pub(super) async fn gracefully(line: &Line, id: &str, grace: Duration) -> Result<()> {
    // Whole seconds, never fewer than were given.
    let seconds = grace.as_millis().div_ceil(1000);
    let request = api::StopContainerRequest {
        container_id: id.to_owned(),
        timeout: i64::try_from(seconds).unwrap_or(i64::MAX),
    };
    match line.ask_longer(request, grace).await {
        Ok(_) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Asks a container to end with a signal of its own, and kills it after the grace. Fine if it is gone.
pub(super) async fn with_signal(line: &Line, id: &str, name: &str, grace: Duration) -> Result<()> {
    let number = number(name)?;
    if !grace.is_zero() {
        let kill = api::KillRequest {
            container_id: id.to_owned(),
            signal: number,
        };
        match line.ask(kill).await {
            Ok(_) | Err(Error::NotFound(_)) => {}
            // It ended in this moment.
            Err(Error::Failed(message)) if message.contains("process already finished") => {}
            Err(error) => return Err(error),
        }
        let wait = api::WaitRequest {
            container_id: id.to_owned(),
        };
        // Whether it ended or not, what is left of it goes now.
        let _ended = tokio::time::timeout(grace, line.ask_plainly(wait)).await;
    }
    gracefully(line, id, Duration::ZERO).await
}

/// The number of a signal, or that there is none.
pub(super) fn number(name: &str) -> Result<u32> {
    let refused = || Error::Refused(format!("lifecycle.stopSignal: there is no signal {name:?}"));
    signals::number(name).ok_or_else(refused)
}
