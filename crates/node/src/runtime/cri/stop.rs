//! Stops containers, with the stop signal of their spec.

use std::time::Duration;

use super::api;
use super::connection::Connection;
use super::create::ignore_not_found;
use crate::runtime::{Error, Result, signals};

/// Sends the image's stop signal, and SIGKILL after the grace period. Succeeds if the container is gone.
pub(super) async fn gracefully(connection: &Connection, id: &str, grace: Duration) -> Result<()> {
    // Rounded up to whole seconds.
    let seconds = grace.as_millis().div_ceil(1000);
    let request = api::StopContainerRequest {
        container_id: id.to_owned(),
        timeout: i64::try_from(seconds).unwrap_or(i64::MAX),
    };
    ignore_not_found(connection.call_with_extra_time(request, grace).await)
}

/// Sends this stop signal, and SIGKILL after the grace period. Succeeds if the container is gone.
pub(super) async fn with_signal(
    connection: &Connection,
    id: &str,
    name: &str,
    grace: Duration,
) -> Result<()> {
    let number = signal_number(name)?;
    if !grace.is_zero() {
        let kill = api::KillRequest {
            container_id: id.to_owned(),
            signal: number,
        };
        match connection.call(kill).await {
            Ok(_) | Err(Error::NotFound(_)) => {}
            // It has just exited.
            Err(Error::Failed(message)) if message.contains("process already finished") => {}
            Err(error) => return Err(error),
        }
        let wait = api::WaitRequest {
            container_id: id.to_owned(),
        };
        // Whether it exited or not, it is stopped now.
        let _exited = tokio::time::timeout(grace, connection.call_once(wait)).await;
    }
    gracefully(connection, id, Duration::ZERO).await
}

pub(super) fn signal_number(name: &str) -> Result<u32> {
    let refused = || Error::Refused(format!("lifecycle.stopSignal: unknown signal {name:?}"));
    signals::number(name).ok_or_else(refused)
}
