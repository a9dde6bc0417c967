//! Creates sandboxes and containers idempotently.
//!
//! A runtime reserves names: it refuses a second sandbox or container of the same pod, name and attempt with the id of the
//! first. Such an error means that an earlier agent was interrupted after its request.

use std::time::Duration;

use super::cgroups::Driver;
use super::connection::Connection;
use super::{api, inventory, translate};
use crate::runtime::{ContainerConfig, Error, Result, SandboxConfig};

/// Extra time for the setup of networks.
const NETWORK_TIMEOUT: Duration = Duration::from_mins(2);

/// Creates and starts a sandbox, or finds the existing one.
pub(super) async fn sandbox(
    connection: &Connection,
    cgroups: Driver,
    config: &SandboxConfig,
) -> Result<String> {
    let request = api::RunPodSandboxRequest {
        config: Some(translate::sandbox(cgroups, config)?),
        runtime_handler: config.handler.clone(),
    };
    match connection
        .call_with_extra_time(request.clone(), NETWORK_TIMEOUT)
        .await
    {
        Ok(response) => return Ok(response.pod_sandbox_id),
        Err(error) => {
            let Some(id) = reserved_for(&error) else {
                return Err(error);
            };
            let first = inventory::sandbox(connection, &id).await?;
            match first.as_ref().map(api::PodSandbox::state) {
                Some(api::PodSandboxState::Ready) => return Ok(id),
                Some(api::PodSandboxState::NotReady) => {
                    stop_sandbox(connection, &id).await?;
                    remove_sandbox(connection, &id).await?;
                }
                None => return Err(still_in_progress(&error)),
            }
        }
    }
    let response = connection
        .call_with_extra_time(request, NETWORK_TIMEOUT)
        .await?;
    Ok(response.pod_sandbox_id)
}

/// Creates a container, or finds the existing one.
pub(super) async fn container(
    connection: &Connection,
    cgroups: Driver,
    sandbox: &SandboxConfig,
    id: &str,
    config: &ContainerConfig,
) -> Result<String> {
    create_log_directory(sandbox, config).await?;
    let request = api::CreateContainerRequest {
        pod_sandbox_id: id.to_owned(),
        config: Some(translate::container(sandbox, config)?),
        sandbox_config: Some(translate::sandbox(cgroups, sandbox)?),
    };
    match connection.call(request.clone()).await {
        Ok(response) => return Ok(response.container_id),
        Err(error) => {
            let Some(first) = reserved_for(&error) else {
                return Err(error);
            };
            let Some(container) = inventory::container(connection, &first).await? else {
                return Err(still_in_progress(&error));
            };
            // A container that never ran is replaced, because the spec may have changed since.
            if container.state() != api::ContainerState::Created {
                return Ok(first);
            }
            remove(connection, &first).await?;
        }
    }
    let response = connection.call(request).await?;
    Ok(response.container_id)
}

/// Starts a container; succeeds if it was started before.
pub(super) async fn start(connection: &Connection, id: &str) -> Result<()> {
    let request = api::StartContainerRequest {
        container_id: id.to_owned(),
    };
    let Err(error) = connection.call(request).await else {
        return Ok(());
    };
    let message_contains =
        |words: &str| matches!(&error, Error::Failed(message) if message.contains(words));
    if message_contains("already in starting state") {
        return Err(still_in_progress(&error));
    }
    let already_started = message_contains("is in CONTAINER_");
    let started = [api::ContainerState::Running, api::ContainerState::Exited];
    match inventory::container(connection, id).await {
        Ok(Some(container)) if already_started && started.contains(&container.state()) => Ok(()),
        _ => Err(error),
    }
}

/// Removes a container; succeeds if it is gone.
pub(super) async fn remove(connection: &Connection, id: &str) -> Result<()> {
    let request = api::RemoveContainerRequest {
        container_id: id.to_owned(),
    };
    ignore_not_found(connection.call(request).await)
}

/// Stops a sandbox and its containers; succeeds if it is gone.
pub(super) async fn stop_sandbox(connection: &Connection, id: &str) -> Result<()> {
    let request = api::StopPodSandboxRequest {
        pod_sandbox_id: id.to_owned(),
    };
    ignore_not_found(
        connection
            .call_with_extra_time(request, NETWORK_TIMEOUT)
            .await,
    )
}

/// Removes a sandbox and its containers; succeeds if it is gone.
pub(super) async fn remove_sandbox(connection: &Connection, id: &str) -> Result<()> {
    let request = api::RemovePodSandboxRequest {
        pod_sandbox_id: id.to_owned(),
    };
    ignore_not_found(connection.call(request).await)
}

/// The runtime does not create the directory of the log.
async fn create_log_directory(sandbox: &SandboxConfig, config: &ContainerConfig) -> Result<()> {
    let log = sandbox.log_dir.join(&config.log_path);
    let directory = log.parent().unwrap_or(&sandbox.log_dir);
    let created = tokio::fs::create_dir_all(directory).await;
    created.map_err(|error| {
        Error::Failed(format!(
            "can't create the log directory {}: {error}",
            directory.display()
        ))
    })
}

pub(super) fn ignore_not_found(result: Result<api::Empty>) -> Result<()> {
    match result {
        Ok(_) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The id that a name is reserved for: `… name "app_pod_ns_uid_0" is reserved for "0123…"`.
fn reserved_for(error: &Error) -> Option<String> {
    let Error::Failed(message) = error else {
        return None;
    };
    let (_, rest) = message.split_once(" is reserved for \"")?;
    let (id, _) = rest.split_once('"')?;
    Some(id.to_owned())
}

/// The name is reserved, but nothing has it yet: an earlier request is still in progress, or being undone.
fn still_in_progress(error: &Error) -> Error {
    Error::Unavailable(format!("an earlier request is still in progress: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_reserved_name_is_parsed() {
        let refusal = r#"failed to reserve container name "app_p_ns_u_0": name "app_p_ns_u_0" is reserved for "0a1b""#;
        let found = reserved_for(&Error::Failed(refusal.to_owned()));
        assert_eq!(found.as_deref(), Some("0a1b"));
        assert_eq!(
            reserved_for(&Error::Failed("no space left".to_owned())),
            None
        );
        assert_eq!(reserved_for(&Error::NotFound(refusal.to_owned())), None);
    }
}
