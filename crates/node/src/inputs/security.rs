//! Security settings of sandboxes and containers, from their security contexts.

use std::path::{Component, Path};

use serde_json::Value;

use crate::json::{all_containers, flag, list, text, texts};
use crate::pods::Pod;
use crate::runtime::{Capabilities, Image, Seccomp, Security};

/// A security context that this node cannot apply.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecurityError {
    #[error("container's runAsUser breaks non-root policy {0}")]
    RunsAsRoot(String),
    #[error("container has runAsNonRoot and image will run as root {0}")]
    ImageRunsAsRoot(String),
    #[error(
        "container has runAsNonRoot and image has non-numeric user ({user}), cannot verify user is non-root {container}"
    )]
    NonNumericUser { user: String, container: String },
    #[error("localhostProfile must be set if seccompProfile type is Localhost.")]
    LocalhostProfile,
    #[error("user namespaces (hostUsers: false) are not supported by this node")]
    UserNamespaces,
    #[error("supplementalGroupsPolicy=Strict is not supported in this node")]
    StrictGroups,
    #[error(
        "Cannot enforce AppArmor: profiles of this machine (type: Localhost) are not supported by this node; use \
         RuntimeDefault"
    )]
    AppArmor,
    #[error("seLinuxOptions are not supported by this node")]
    SeLinux,
}

pub(super) fn of_sandbox(pod: &Pod, profiles: &Path) -> Result<Security, SecurityError> {
    let own = &pod.raw_spec()["securityContext"];
    check_supported(pod.raw_spec(), own)?;
    Ok(Security {
        privileged: is_privileged(pod),
        user: own["runAsUser"].as_i64(),
        group: own["runAsGroup"].as_i64(),
        groups: groups(pod),
        seccomp: seccomp(&[own], profiles)?,
        ..Security::default()
    })
}

/// Whether any container is privileged.
pub(super) fn is_privileged(pod: &Pod) -> bool {
    let mut all = all_containers(pod.raw_spec());
    all.any(|container| flag(&container["securityContext"], "privileged"))
}

/// The image's user applies if neither the container nor the pod sets one.
pub(super) fn of_container(
    pod: &Pod,
    container: &Value,
    image: &Image,
    has_images: bool,
    profiles: &Path,
) -> Result<Security, SecurityError> {
    let (own, all) = (
        &container["securityContext"],
        &pod.raw_spec()["securityContext"],
    );
    check_supported(&Value::Null, own)?;
    let either = |key: &str| match &own[key] {
        Value::Null => &all[key],
        value => value,
    };
    let user = either("runAsUser").as_i64();
    if *either("runAsNonRoot") == true {
        check_not_root(pod, text(container, "name"), user, image)?;
    }
    let privileged = flag(own, "privileged");
    let by_image = user.is_none() && has_images;
    // An image without a user runs as root.
    let image_user = match image.username.as_str() {
        "" => Some(image.uid.unwrap_or(0)),
        _ => image.uid,
    };
    Ok(Security {
        privileged,
        user: user.or(image_user.filter(|_| by_image)),
        username: if by_image {
            image.username.clone()
        } else {
            String::new()
        },
        group: either("runAsGroup").as_i64(),
        groups: groups(pod),
        capabilities: Capabilities {
            add: texts(&own["capabilities"], "add"),
            drop: texts(&own["capabilities"], "drop"),
        },
        read_only_root: flag(own, "readOnlyRootFilesystem"),
        no_new_privileges: own["allowPrivilegeEscalation"] == false,
        seccomp: if privileged {
            Seccomp::Unconfined
        } else {
            seccomp(&[own, all], profiles)?
        },
        unmasked_proc: text(own, "procMount") == "Unmasked",
    })
}

/// The supplemental groups of a pod's containers, with its fsGroup.
fn groups(pod: &Pod) -> Vec<i64> {
    let own = &pod.raw_spec()["securityContext"];
    let groups = list(own, "supplementalGroups").iter();
    let groups = groups.chain(std::iter::once(&own["fsGroup"]));
    groups.filter_map(Value::as_i64).collect()
}

fn check_not_root(
    pod: &Pod,
    container: &str,
    user: Option<i64>,
    image: &Image,
) -> Result<(), SecurityError> {
    let id = &pod.id;
    let container = format!(
        "(pod: \"{}_{}({})\", container: {container})",
        id.name, id.namespace, id.uid
    );
    match (user, image.uid, image.username.as_str()) {
        (Some(0), _, _) => Err(SecurityError::RunsAsRoot(container)),
        (Some(_), _, _) => Ok(()),
        (None, Some(0), _) | (None, None, "") => Err(SecurityError::ImageRunsAsRoot(container)),
        (None, Some(_), _) => Ok(()),
        (None, None, user) => Err(SecurityError::NonNumericUser {
            user: user.to_owned(),
            container,
        }),
    }
}

/// The first profile of these contexts; unconfined without one.
fn seccomp(contexts: &[&Value], profiles: &Path) -> Result<Seccomp, SecurityError> {
    let mut profile = contexts.iter().map(|context| &context["seccompProfile"]);
    let Some(profile) = profile.find(|profile| !profile.is_null()) else {
        return Ok(Seccomp::Unconfined);
    };
    match text(profile, "type") {
        "RuntimeDefault" => Ok(Seccomp::RuntimeDefault),
        "Localhost" => {
            let name = Path::new(text(profile, "localhostProfile"));
            let normal = |part| matches!(part, Component::Normal(_));
            if name.as_os_str().is_empty() || !name.components().all(normal) {
                return Err(SecurityError::LocalhostProfile);
            }
            Ok(Seccomp::Localhost(profiles.join(name)))
        }
        _ => Ok(Seccomp::Unconfined),
    }
}

/// Rejects settings that no runtime of this node applies, instead of ignoring them.
fn check_supported(spec: &Value, context: &Value) -> Result<(), SecurityError> {
    if spec["hostUsers"] == false {
        return Err(SecurityError::UserNamespaces);
    }
    if text(context, "supplementalGroupsPolicy") == "Strict" {
        return Err(SecurityError::StrictGroups);
    }
    if text(&context["appArmorProfile"], "type") == "Localhost" {
        return Err(SecurityError::AppArmor);
    }
    // Without SELinux in the kernel, its labels have no effect on any node.
    if context["seLinuxOptions"].is_object() && Path::new("/sys/fs/selinux/enforce").exists() {
        return Err(SecurityError::SeLinux);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
