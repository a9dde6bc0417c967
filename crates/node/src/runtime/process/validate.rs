//! Refuses what processes cannot provide, with messages that name the way out. Nothing is ignored silently;
//! `docs/reference/process-runtime.md` lists everything.

use super::privileges::Privileges;
use super::{capability, spec};
use crate::runtime::{ContainerConfig, Error, Mount, Propagation, SandboxConfig, Seccomp};

/// The usual way out.
const ENGINE: &str = "install containerd";

/// Validates the configuration of a pod.
pub(super) fn sandbox(config: &SandboxConfig, privileges: &Privileges) -> Result<(), Error> {
    let refusals = [
        (
            !config.host_network,
            format!("has no pod network: set hostNetwork: true, or {ENGINE}"),
        ),
        (
            config.share_processes,
            format!(
                "cannot share processes among containers alone: leave out shareProcessNamespace (kubectl debug \
                 --copy-to: --share-processes=false), set hostPID: true, or {ENGINE}"
            ),
        ),
        (
            !config.sysctls.is_empty(),
            format!("cannot set sysctls: set them on the machine, or {ENGINE}"),
        ),
        (
            !config.handler.is_empty(),
            format!("has no runtime classes: leave out runtimeClassName, or {ENGINE}"),
        ),
        (
            !privileges.root && !config.host_pid,
            "cannot hide processes without root: set hostPID: true, or run the agent as root"
                .to_owned(),
        ),
    ];
    first(refusals)
}

/// Validates the configuration of a container.
pub(super) fn container(
    sandbox: &SandboxConfig,
    config: &ContainerConfig,
    privileges: &Privileges,
) -> Result<(), Error> {
    self::sandbox(sandbox, privileges)?;
    let security = &config.security;
    let capabilities = &security.capabilities;
    let mut named = capabilities.add.iter().chain(&capabilities.drop);
    let unknown = named.find(|name| !capability::is_known(name));
    let refusals = [
        (
            config.command.is_empty(),
            format!("has no images, and so no entrypoint: set command:, or {ENGINE}"),
        ),
        (
            security.seccomp != Seccomp::Unconfined && !security.privileged,
            format!("has no seccomp profiles: set seccompProfile.type: Unconfined, or {ENGINE}"),
        ),
        (
            !config.devices.is_empty()
                && config
                    .devices
                    .iter()
                    .any(|device| device.host_path != device.container_path),
            format!("cannot rename devices: use the host's paths, or {ENGINE}"),
        ),
        (
            !security.username.is_empty() && security.user.is_none(),
            format!("needs numeric users: set runAsUser, or {ENGINE}"),
        ),
        (
            unknown.is_some(),
            format!(
                "does not know the capability {:?}",
                unknown.map_or("", String::as_str)
            ),
        ),
    ];
    first(refusals)?;
    if privileges.root {
        Ok(())
    } else {
        without_root(config)
    }
}

/// Validates what only root can provide.
fn without_root(config: &ContainerConfig) -> Result<(), Error> {
    const OR: &str = "or run the agent as root";
    let security = &config.security;
    let own_user = i64::from(rustix::process::geteuid().as_raw());
    let own_group = i64::from(rustix::process::getegid().as_raw());
    let moved = spec::mounts_without_root(config).find(|mount| needs_mounting(mount));
    let refusals = [
        (
            moved.is_some(),
            format!(
                "cannot mount without root: give {} the same path in the container as on the machine \
                 and let it be written to, {OR}",
                moved.map_or(String::new(), |mount| mount
                    .container_path
                    .display()
                    .to_string())
            ),
        ),
        (
            security.user.is_some_and(|user| user != own_user)
                || security.group.is_some_and(|group| group != own_group),
            format!(
                "runs everything as the agent's user without root: leave out runAsUser and runAsGroup, {OR}"
            ),
        ),
        (
            security.groups.iter().any(|group| *group != own_group),
            format!(
                "cannot add groups without root: leave out fsGroup and supplementalGroups, {OR}"
            ),
        ),
        (
            security.privileged || !security.capabilities.add.is_empty(),
            format!(
                "cannot give privileges without root: leave out privileged and capabilities.add, {OR}"
            ),
        ),
        (
            security.read_only_root,
            format!(
                "cannot make the root read-only without root: leave out readOnlyRootFilesystem, {OR}"
            ),
        ),
    ];
    first(refusals)
}

/// Whether a mount provides more than access to the same path on the host.
fn needs_mounting(mount: &Mount) -> bool {
    mount.host_path != mount.container_path
        || mount.read_only
        || mount.propagation == Propagation::Bidirectional
}

fn first<const N: usize>(refusals: [(bool, String); N]) -> Result<(), Error> {
    match refusals.into_iter().find(|(applies, _)| *applies) {
        Some((_, why)) => Err(Error::Refused(format!("the process runtime {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::runtime::{Capabilities, Device, Security};

    const ROOT: Privileges = Privileges {
        root: true,
        hidden: PathBuf::new(),
        cgroups: None,
    };
    const UNPRIVILEGED: Privileges = Privileges {
        root: false,
        hidden: PathBuf::new(),
        cgroups: None,
    };

    fn pod() -> SandboxConfig {
        SandboxConfig {
            host_network: true,
            host_pid: true,
            ..SandboxConfig::default()
        }
    }

    fn app() -> ContainerConfig {
        ContainerConfig {
            command: vec!["app".to_owned()],
            ..ContainerConfig::default()
        }
    }

    fn check<T: std::fmt::Debug>(found: Result<T, Error>, expected: &str) {
        let Err(Error::Refused(found)) = found else {
            panic!("expected {expected:?}, found {found:?}");
        };
        assert!(
            found.contains(expected),
            "expected {expected:?}, found {found:?}"
        );
    }

    #[test]
    fn pods_without_special_needs_are_accepted() {
        for privileges in [ROOT, UNPRIVILEGED] {
            sandbox(&pod(), &privileges).unwrap();
            container(&pod(), &app(), &privileges).unwrap();
        }
        sandbox(
            &SandboxConfig {
                host_pid: false,
                ..pod()
            },
            &ROOT,
        )
        .unwrap();
    }

    #[test]
    fn refused_pods_are_told_the_way_out() {
        let with = |change: fn(&mut SandboxConfig)| {
            let mut pod = pod();
            change(&mut pod);
            sandbox(&pod, &ROOT)
        };
        check(
            with(|pod| pod.host_network = false),
            "the process runtime has no pod network: set hostNetwork: true, or install containerd",
        );
        check(with(|pod| pod.share_processes = true), "set hostPID: true");
        check(
            with(|pod| pod.handler = "kata".to_owned()),
            "leave out runtimeClassName",
        );
        check(
            with(|pod| drop(pod.sysctls.insert("a".to_owned(), "1".to_owned()))),
            "on the machine",
        );
        check(
            sandbox(
                &SandboxConfig {
                    host_pid: false,
                    ..pod()
                },
                &UNPRIVILEGED,
            ),
            "run the agent as root",
        );
    }

    #[test]
    fn refused_containers_are_told_the_way_out() {
        let with = |privileges: &Privileges, change: fn(&mut ContainerConfig)| {
            let mut app = app();
            change(&mut app);
            container(&pod(), &app, privileges)
        };
        check(
            with(&ROOT, |app| app.command.clear()),
            "set command:, or install containerd",
        );
        check(
            with(&ROOT, |app| app.security.seccomp = Seccomp::RuntimeDefault),
            "type: Unconfined",
        );
        check(
            with(&ROOT, |app| app.security.username = "web".to_owned()),
            "set runAsUser",
        );
        check(
            with(&ROOT, |app| {
                app.security.capabilities = Capabilities {
                    add: vec!["FLY".to_owned()],
                    drop: vec![],
                }
            }),
            "\"FLY\"",
        );
        check(
            with(&ROOT, |app| {
                app.devices = vec![Device {
                    container_path: "/dev/a".into(),
                    host_path: "/dev/b".into(),
                    permissions: String::new(),
                }];
            }),
            "devices",
        );
        check(
            with(&UNPRIVILEGED, |app| {
                app.security = Security {
                    user: Some(4242),
                    ..Security::default()
                }
            }),
            "runAsUser",
        );
        check(
            with(&UNPRIVILEGED, |app| app.security.read_only_root = true),
            "readOnlyRootFilesystem",
        );
        check(
            with(&UNPRIVILEGED, |app| app.security.privileged = true),
            "privileged",
        );
        let mounted = |app: &mut ContainerConfig| {
            app.mounts = vec![Mount {
                container_path: "/data".into(),
                host_path: "/x".into(),
                ..Mount::default()
            }];
        };
        check(with(&UNPRIVILEGED, mounted), "give /data the same path");
        with(&ROOT, mounted).unwrap();
    }
}
