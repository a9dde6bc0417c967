//! Making sandboxes and containers, once each.
//!
//! A runtime reserves names: a second one of the same pod, name and attempt is refused with the id of the
//! first. Such a refusal means that we were here before, and ended in the middle.

use std::time::Duration;

use super::cgroups::Driver;
use super::line::Line;
use super::{api, found, translate};
use crate::runtime::{ContainerConfig, Error, Result, SandboxConfig};

/// What networks take to be made, on top of what is reasonable.
const NETWORK: Duration = Duration::from_mins(2);

/// Makes and starts a sandbox, or finds the one that was made.
pub(super) async fn sandbox(
    line: &Line,
    cgroups: Driver,
    config: &SandboxConfig,
) -> Result<String> {
    let request = api::RunPodSandboxRequest {
        config: Some(translate::sandbox(cgroups, config)?),
        runtime_handler: config.handler.clone(),
    };
    match line.ask_longer(request.clone(), NETWORK).await {
        Ok(answer) => return Ok(answer.pod_sandbox_id),
        Err(error) => {
            let Some(id) = reserved_for(&error) else {
                return Err(error);
            };
            let first = found::sandbox(line, &id).await?;
            match first.as_ref().map(api::PodSandbox::state) {
                Some(api::PodSandboxState::Ready) => return Ok(id),
                Some(api::PodSandboxState::NotReady) => clear_sandbox(line, &id).await?,
                None => return Err(still_at_it(&error)),
            }
        }
    }
    let answer = line.ask_longer(request, NETWORK).await?;
    Ok(answer.pod_sandbox_id)
}

/// Makes a container, or finds the one that was made.
pub(super) async fn container(
    line: &Line,
    cgroups: Driver,
    sandbox: &SandboxConfig,
    id: &str,
    config: &ContainerConfig,
) -> Result<String> {
    make_log_directory(sandbox, config).await?;
    let request = api::CreateContainerRequest {
        pod_sandbox_id: id.to_owned(),
        config: Some(translate::container(sandbox, config)?),
        sandbox_config: Some(translate::sandbox(cgroups, sandbox)?),
    };
    match line.ask(request.clone()).await {
        Ok(answer) => return Ok(answer.container_id),
        Err(error) => {
            let Some(first) = reserved_for(&error) else {
                return Err(error);
            };
            let Some(container) = found::container(line, &first).await? else {
                return Err(still_at_it(&error));
            };
            // One that never ran may have been made of something else: the spec may have changed since.
            if container.state() != api::ContainerState::Created {
                return Ok(first);
            }
            remove(line, &first).await?;
        }
    }
    let answer = line.ask(request).await?;
    Ok(answer.container_id)
}

/// Starts a container, once: fine if that was done before.
pub(super) async fn start(line: &Line, id: &str) -> Result<()> {
    let request = api::StartContainerRequest {
        container_id: id.to_owned(),
    };
    let Err(error) = line.ask(request).await else {
        return Ok(());
    };
    let says = |words: &str| matches!(&error, Error::Failed(message) if message.contains(words));
    if says("already in starting state") {
        return Err(still_at_it(&error));
    }
    let retold = says("is in CONTAINER_");
    let begun = [api::ContainerState::Running, api::ContainerState::Exited];
    match found::container(line, id).await {
        Ok(Some(container)) if retold && begun.contains(&container.state()) => Ok(()),
        _ => Err(error),
    }
}

/// Forgets a container. Fine if it is gone.
pub(super) async fn remove(line: &Line, id: &str) -> Result<()> {
    let request = api::RemoveContainerRequest {
        container_id: id.to_owned(),
    };
    unless_gone(line.ask(request).await)
}

/// Ends all in a sandbox. Fine if it is gone.
pub(super) async fn stop_sandbox(line: &Line, id: &str) -> Result<()> {
    let request = api::StopPodSandboxRequest {
        pod_sandbox_id: id.to_owned(),
    };
    unless_gone(line.ask_longer(request, NETWORK).await)
}

/// Forgets a sandbox and its containers. Fine if it is gone.
pub(super) async fn remove_sandbox(line: &Line, id: &str) -> Result<()> {
    let request = api::RemovePodSandboxRequest {
        pod_sandbox_id: id.to_owned(),
    };
    unless_gone(line.ask(request).await)
}

async fn clear_sandbox(line: &Line, id: &str) -> Result<()> {
    stop_sandbox(line, id).await?;
    remove_sandbox(line, id).await
}

/// The runtime opens the log and makes no directory for it.
async fn make_log_directory(sandbox: &SandboxConfig, config: &ContainerConfig) -> Result<()> {
    let log = sandbox.log_dir.join(&config.log_path);
    let directory = log.parent().unwrap_or(&sandbox.log_dir);
    let made = tokio::fs::create_dir_all(directory).await;
    made.map_err(|error| {
        Error::Failed(format!(
            "can't create the log directory {}: {error}",
            directory.display()
        ))
    })
}

fn unless_gone(answer: Result<api::Done>) -> Result<()> {
    match answer {
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

/// The name is taken and nothing has it yet: an earlier request is still being carried out, or undone.
fn still_at_it(error: &Error) -> Error {
    Error::Unavailable(format!("an earlier request is not over: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_has_the_name_is_found_in_the_refusal() {
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
