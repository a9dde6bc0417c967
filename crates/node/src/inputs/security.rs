//! What a container may do, from its own security context and its pod's.

use std::path::{Component, Path};

use serde_json::Value;

use super::tree::{flag, list, text, texts};
use crate::pods::Pod;
use crate::runtime::{Capabilities, Image, Seccomp, Security};

/// Of a sandbox: the pod's own word.
pub(super) fn of_sandbox(pod: &Pod, profiles: &Path) -> Result<Security, String> {
    let own = &pod.raw_spec()["securityContext"];
    refuse(pod.raw_spec(), own)?;
    Ok(Security {
        privileged: is_privileged(pod),
        user: own["runAsUser"].as_i64(),
        group: own["runAsGroup"].as_i64(),
        groups: groups(pod),
        seccomp: seccomp(&[own], profiles)?,
        ..Security::default()
    })
}

/// Runs any container of it with all rights?
pub(super) fn is_privileged(pod: &Pod) -> bool {
    let mut all = super::tree::containers(pod.raw_spec());
    all.any(|container| flag(&container["securityContext"], "privileged"))
}

/// Of a container; the image says whom it runs as where nobody else does.
pub(super) fn of_container(
    pod: &Pod,
    container: &Value,
    image: &Image,
    has_images: bool,
    profiles: &Path,
) -> Result<Security, String> {
    let (own, all) = (
        &container["securityContext"],
        &pod.raw_spec()["securityContext"],
    );
    refuse(&Value::Null, own)?;
    let either = |key: &str| match &own[key] {
        Value::Null => &all[key],
        value => value,
    };
    let user = either("runAsUser").as_i64();
    if *either("runAsNonRoot") == true {
        not_root(pod, text(container, "name"), user, image)?;
    }
    let privileged = flag(own, "privileged");
    let by_image = user.is_none() && has_images;
    // An image that names nobody means root.
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

/// The further groups of a pod's containers: that of its volumes is one of them.
fn groups(pod: &Pod) -> Vec<i64> {
    let own = &pod.raw_spec()["securityContext"];
    let groups = list(own, "supplementalGroups").iter();
    let groups = groups.chain(std::iter::once(&own["fsGroup"]));
    groups.filter_map(Value::as_i64).collect()
}

fn not_root(pod: &Pod, container: &str, user: Option<i64>, image: &Image) -> Result<(), String> {
    let id = &pod.id;
    let whom = format!(
        "(pod: \"{}_{}({})\", container: {container})",
        id.name, id.namespace, id.uid
    );
    match (user, image.uid, image.username.as_str()) {
        (Some(0), _, _) => Err(format!(
            "container's runAsUser breaks non-root policy {whom}"
        )),
        (Some(_), _, _) => Ok(()),
        (None, Some(0), _) | (None, None, "") => Err(format!(
            "container has runAsNonRoot and image will run as root {whom}"
        )),
        (None, Some(_), _) => Ok(()),
        (None, None, name) => Err(format!(
            "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is \
             non-root {whom}"
        )),
    }
}

/// The first that says something; all system calls where nobody does.
fn seccomp(said: &[&Value], profiles: &Path) -> Result<Seccomp, String> {
    let said = said.iter().map(|context| &context["seccompProfile"]);
    let Some(profile) = said.into_iter().find(|profile| !profile.is_null()) else {
        return Ok(Seccomp::Unconfined);
    };
    match text(profile, "type") {
        "RuntimeDefault" => Ok(Seccomp::RuntimeDefault),
        "Localhost" => {
            let name = Path::new(text(profile, "localhostProfile"));
            let plain = |part| matches!(part, Component::Normal(_));
            if name.as_os_str().is_empty() || !name.components().all(plain) {
                return Err(
                    "localhostProfile must be set if seccompProfile type is Localhost.".into(),
                );
            }
            Ok(Seccomp::Localhost(profiles.join(name)))
        }
        _ => Ok(Seccomp::Unconfined),
    }
}

/// What no runtime here can honour must not be left out silently.
fn refuse(spec: &Value, context: &Value) -> Result<(), String> {
    if spec["hostUsers"] == false {
        return Err("user namespaces (hostUsers: false) are not supported by this node".into());
    }
    if text(context, "supplementalGroupsPolicy") == "Strict" {
        return Err("supplementalGroupsPolicy=Strict is not supported in this node".into());
    }
    if text(&context["appArmorProfile"], "type") == "Localhost" {
        return Err(
            "Cannot enforce AppArmor: profiles of this machine (type: Localhost) are not supported \
             by this node; use RuntimeDefault"
                .into(),
        );
    }
    // Where the kernel knows no SELinux, its labels mean nothing, here as everywhere.
    if context["seLinuxOptions"].is_object() && Path::new("/sys/fs/selinux/enforce").exists() {
        return Err("seLinuxOptions are not supported by this node".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
