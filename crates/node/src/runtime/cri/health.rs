//! Version, configuration and health of a runtime.

use std::path::PathBuf;

use kennel_network::cni::Places;
use serde_json::Value;

use super::api;
use super::cgroups::Driver;
use super::connection::Connection;
use crate::json::list;
use crate::runtime::{About, Health, Result};

/// What does not change while a version of a runtime runs.
#[derive(Clone, Debug)]
pub(super) struct RuntimeInfo {
    pub(super) about: About,
    /// The directory of images and container layers.
    pub(super) image_dir: Option<PathBuf>,
    pub(super) cgroups: Driver,
}

pub(super) async fn info(connection: &Connection) -> Result<RuntimeInfo> {
    Ok(RuntimeInfo {
        about: about(connection).await?,
        image_dir: image_dir(connection).await?,
        cgroups: driver(&configuration(connection).await?),
    })
}

pub(super) async fn about(connection: &Connection) -> Result<About> {
    let version = connection.call(api::VersionRequest {}).await?;
    Ok(About {
        name: version.runtime_name,
        version: version.runtime_version,
        images: true,
    })
}

/// What is known of a runtime that has not answered yet, in the kubelet's words.
pub(super) fn unknown() -> About {
    About {
        name: "unknown".to_owned(),
        version: "Unknown".to_owned(),
        images: true,
    }
}

async fn image_dir(connection: &Connection) -> Result<Option<PathBuf>> {
    let response = connection.call(api::ImageFsInfoRequest {}).await?;
    let mut places = response.image_filesystems.into_iter();
    let place = places.find_map(|usage| usage.fs_id);
    Ok(place
        .map(|place| PathBuf::from(place.mountpoint))
        .filter(|place| !place.as_os_str().is_empty()))
}

/// containerd's configuration, from its verbose status; `null` for other runtimes.
async fn configuration(connection: &Connection) -> Result<Value> {
    let response = connection
        .call(api::StatusRequest { verbose: true })
        .await?;
    let config = response.info.get("config").map_or("", String::as_str);
    Ok(serde_json::from_str(config).unwrap_or_default())
}

/// Where the runtime looks for CNI configurations and plugins: containerd says so, others look in the usual places.
pub(super) async fn cni(connection: &Connection) -> Result<Places> {
    Ok(places(&configuration(connection).await?))
}

fn places(config: &Value) -> Places {
    let cni = &config["cni"];
    let default = Places::default();
    // `binDirs` since containerd 2.
    let listed = list(cni, "binDirs").iter().filter_map(Value::as_str);
    let mut plugins: Vec<PathBuf> = listed
        .chain(cni["binDir"].as_str())
        .map(PathBuf::from)
        .collect();
    plugins.retain(|dir| !dir.as_os_str().is_empty());
    if plugins.is_empty() {
        plugins = default.plugins;
    }
    let configured = cni["confDir"].as_str().filter(|dir| !dir.is_empty());
    Places {
        configurations: configured.map_or(default.configurations, PathBuf::from),
        plugins,
    }
}

/// The cgroup driver of the default runtime handler.
fn driver(config: &Value) -> Driver {
    let containerd = &config["containerd"];
    let default = containerd["defaultRuntimeName"].as_str().unwrap_or("runc");
    let systemd = &containerd["runtimes"][default]["options"]["SystemdCgroup"];
    if *systemd == true {
        Driver::Systemd
    } else {
        Driver::Cgroupfs
    }
}

/// The image of sandboxes, which must not be removed although no container uses it.
pub(super) async fn sandbox_image(connection: &Connection) -> Result<String> {
    let config = configuration(connection).await?;
    Ok(config["sandboxImage"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

pub(super) async fn health(connection: &Connection) -> Result<Health> {
    let response = connection
        .call(api::StatusRequest { verbose: false })
        .await?;
    Ok(from_status(&response.status.unwrap_or_default()))
}

fn from_status(status: &api::RuntimeStatus) -> Health {
    let problem = |kind: &str, what: &str| {
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
            None => Some(format!("{what} not ready: {kind} is not reported")),
        }
    };
    Health {
        runtime: problem("RuntimeReady", "container runtime"),
        network: problem("NetworkReady", "container runtime network"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cgroup_driver_is_read_from_the_configuration() {
        let config = |name: &str, systemd: bool| {
            let runtimes =
                json!({"runc": {"options": {"SystemdCgroup": systemd}}, "crun": {"options": {}}});
            json!({"containerd": {"defaultRuntimeName": name, "runtimes": runtimes}})
        };
        assert_eq!(driver(&config("runc", true)), Driver::Systemd);
        assert_eq!(driver(&config("runc", false)), Driver::Cgroupfs);
        assert_eq!(driver(&config("crun", true)), Driver::Cgroupfs);
        assert_eq!(driver(&Value::Null), Driver::Cgroupfs);
    }

    #[test]
    fn cni_is_where_containerd_says_or_in_the_usual_places() {
        let own = json!({"cni": {"confDir": "/c", "binDir": "/b"}});
        let expected = Places {
            configurations: "/c".into(),
            plugins: vec!["/b".into()],
        };
        assert_eq!(places(&own), expected);
        let newer = json!({"cni": {"confDir": "/c", "binDir": "", "binDirs": ["/b"]}});
        assert_eq!(places(&newer), expected);
        assert_eq!(places(&Value::Null), Places::default());
    }

    #[test]
    fn unready_conditions_are_reported_in_upstreams_words() {
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
        let health = from_status(&status);
        assert_eq!(health.runtime, None);
        assert_eq!(
            health.network.as_deref(),
            Some(
                "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
                 message:Network plugin returns error: cni plugin not initialized"
            )
        );
        let missing = from_status(&api::RuntimeStatus::default());
        assert!(missing.runtime.is_some() && missing.network.is_some());
    }
}
