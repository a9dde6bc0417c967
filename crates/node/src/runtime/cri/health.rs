//! What a runtime says of itself.

use std::path::PathBuf;

use serde_json::Value;

use super::api;
use super::cgroups::Driver;
use super::line::Line;
use crate::runtime::{About, Health, Result};

/// What does not change while a runtime runs.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) about: About,
    /// Where images and the layers of containers are.
    pub(super) image_dir: Option<PathBuf>,
    /// Who makes control groups.
    pub(super) cgroups: Driver,
}

/// Asks for what does not change.
pub(super) async fn facts(line: &Line) -> Result<Facts> {
    let version = line.ask(api::VersionRequest {}).await?;
    let about = About {
        name: version.runtime_name,
        version: version.runtime_version,
        images: true,
    };
    Ok(Facts {
        about,
        image_dir: image_dir(line).await?,
        cgroups: driver(&configuration(line).await?),
    })
}

async fn image_dir(line: &Line) -> Result<Option<PathBuf>> {
    let answer = line.ask(api::ImageFsInfoRequest {}).await?;
    let mut places = answer.image_filesystems.into_iter();
    let place = places.find_map(|usage| usage.fs_id);
    Ok(place
        .map(|place| PathBuf::from(place.mountpoint))
        .filter(|place| !place.as_os_str().is_empty()))
}

/// How containerd is configured, as it tells those who ask closely; nothing from other runtimes.
async fn configuration(line: &Line) -> Result<Value> {
    let answer = line.ask(api::StatusRequest { verbose: true }).await?;
    let config = answer.info.get("config").map_or("", String::as_str);
    Ok(serde_json::from_str(config).unwrap_or_default())
}

/// Who makes control groups for what is run as usual.
fn driver(config: &Value) -> Driver {
    let containerd = &config["containerd"];
    let usual = containerd["defaultRuntimeName"].as_str().unwrap_or("runc");
    let systemd = &containerd["runtimes"][usual]["options"]["SystemdCgroup"];
    if *systemd == true {
        Driver::Systemd
    } else {
        Driver::Files
    }
}

/// The image that sandboxes are made of, which nothing else may seem to use.
pub(super) async fn sandbox_image(line: &Line) -> Result<String> {
    let config = configuration(line).await?;
    Ok(config["sandboxImage"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

/// Asks whether it can do its work.
pub(super) async fn health(line: &Line) -> Health {
    match line.ask(api::StatusRequest { verbose: false }).await {
        Ok(answer) => judge(&answer.status.unwrap_or_default()),
        Err(error) => Health {
            runtime: Some(format!("container runtime is down: {error}")),
            network: None,
        },
    }
}

fn judge(status: &api::RuntimeStatus) -> Health {
    let trouble = |kind: &str, what: &str| {
        let found = status
            .conditions
            .iter()
            .find(|condition| condition.r#type == kind);
        match found {
            Some(condition) if condition.status => None,
            Some(api::RuntimeCondition {
                reason, message, ..
            }) => Some(format!(
                "{what} not ready: {kind}=false reason:{reason} message:{message}"
            )),
            None => Some(format!("{what} not ready: {kind} is not told")),
        }
    };
    Health {
        runtime: trouble("RuntimeReady", "container runtime"),
        network: trouble("NetworkReady", "container runtime network"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_makes_control_groups_is_in_the_configuration() {
        let config = |name: &str, systemd: bool| {
            let runtimes =
                json!({"runc": {"options": {"SystemdCgroup": systemd}}, "crun": {"options": {}}});
            json!({"containerd": {"defaultRuntimeName": name, "runtimes": runtimes}})
        };
        assert_eq!(driver(&config("runc", true)), Driver::Systemd);
        assert_eq!(driver(&config("runc", false)), Driver::Files);
        assert_eq!(driver(&config("crun", true)), Driver::Files);
        assert_eq!(driver(&Value::Null), Driver::Files);
    }

    #[test]
    fn what_is_not_ready_is_told_in_upstreams_words() {
        let condition = |kind: &str, status, reason: &str, message: &str| api::RuntimeCondition {
            r#type: kind.into(),
            status,
            reason: reason.into(),
            message: message.into(),
        };
        let network = "Network plugin returns error: cni plugin not initialized";
        let status = api::RuntimeStatus {
            conditions: vec![
                condition("RuntimeReady", true, "", ""),
                condition("NetworkReady", false, "NetworkPluginNotReady", network),
            ],
        };
        let health = judge(&status);
        assert_eq!(health.runtime, None);
        assert_eq!(
            health.network.as_deref(),
            Some(
                "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
                 message:Network plugin returns error: cni plugin not initialized"
            )
        );
        let silent = judge(&api::RuntimeStatus::default());
        assert!(silent.runtime.is_some() && silent.network.is_some());
    }
}
