//! What plain processes cannot be: refused in words that name the way out. Nothing that a pod asks for is
//! left out silently; `docs/reference/process-runtime.md` lists all of it.

use super::rights::Rights;
use super::{capability, spec};
use crate::runtime::{ContainerConfig, Error, Mount, Propagation, SandboxConfig, Seccomp};

/// The way out of most.
const ENGINE: &str = "install containerd";

/// What speaks against a pod as a whole.
pub(super) fn sandbox(config: &SandboxConfig, rights: &Rights) -> Result<(), Error> {
    let refusals = [
        (
            !config.host_network,
            format!("has no pod network: set hostNetwork: true, or {ENGINE}"),
        ),
        (
            config.share_processes,
            format!(
                "cannot share processes among containers alone: set hostPID: true, or {ENGINE}"
            ),
        ),
        (
            !config.sysctls.is_empty(),
            format!("sets no sysctls: set them on the machine, or {ENGINE}"),
        ),
        (
            !config.handler.is_empty(),
            format!("knows no runtime classes: leave out runtimeClassName, or {ENGINE}"),
        ),
        (
            !rights.root && !config.host_pid,
            "hides no processes without root: set hostPID: true, or run the agent as root"
                .to_owned(),
        ),
    ];
    first(refusals)
}

/// What speaks against a container.
pub(super) fn container(
    sandbox: &SandboxConfig,
    config: &ContainerConfig,
    rights: &Rights,
) -> Result<(), Error> {
    self::sandbox(sandbox, rights)?;
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
            format!("cannot give devices other names: use the machine's, or {ENGINE}"),
        ),
        (
            !security.username.is_empty() && security.user.is_none(),
            format!("knows users by number: set runAsUser, or {ENGINE}"),
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
    if rights.root {
        Ok(())
    } else {
        without_root(config)
    }
}

/// What only root can do.
fn without_root(config: &ContainerConfig) -> Result<(), Error> {
    const OR: &str = "or run the agent as root";
    let security = &config.security;
    let own = i64::from(rustix::process::geteuid().as_raw());
    let group = i64::from(rustix::process::getegid().as_raw());
    let moved = spec::mounts(config, false).find(|mount| is_more_than_there(mount));
    let refusals = [
        (
            moved.is_some(),
            format!(
                "mounts nothing without root: give {} the same path in the container as on the machine \
                 and let it be written to, {OR}",
                moved.map_or(String::new(), |mount| mount
                    .container_path
                    .display()
                    .to_string())
            ),
        ),
        (
            security.user.is_some_and(|user| user != own)
                || security.group.is_some_and(|its| its != group),
            format!(
                "runs everything as the agent's own user without root: leave out runAsUser and runAsGroup, {OR}"
            ),
        ),
        (
            security.groups.iter().any(|its| *its != group),
            format!("adds no groups without root: leave out fsGroup and supplementalGroups, {OR}"),
        ),
        (
            security.privileged || !security.capabilities.add.is_empty(),
            format!(
                "gives no privileges without root: leave out privileged and capabilities.add, {OR}"
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

/// A mount that does more than let a container see what it sees anyway.
fn is_more_than_there(mount: &Mount) -> bool {
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

    const ROOT: Rights = Rights {
        root: true,
        hidden: PathBuf::new(),
        cgroups: None,
    };
    const PLAIN: Rights = Rights {
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
    fn plain_pods_are_taken() {
        for rights in [ROOT, PLAIN] {
            sandbox(&pod(), &rights).unwrap();
            container(&pod(), &app(), &rights).unwrap();
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
    fn pods_that_need_more_are_told_the_way_out() {
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
                &PLAIN,
            ),
            "run the agent as root",
        );
    }

    #[test]
    fn containers_that_need_more_are_told_the_way_out() {
        let with = |rights: &Rights, change: fn(&mut ContainerConfig)| {
            let mut app = app();
            change(&mut app);
            container(&pod(), &app, rights)
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
            with(&PLAIN, |app| {
                app.security = Security {
                    user: Some(4242),
                    ..Security::default()
                }
            }),
            "runAsUser",
        );
        check(
            with(&PLAIN, |app| app.security.read_only_root = true),
            "readOnlyRootFilesystem",
        );
        check(
            with(&PLAIN, |app| app.security.privileged = true),
            "privileged",
        );
        let mounted = |app: &mut ContainerConfig| {
            app.mounts = vec![Mount {
                container_path: "/data".into(),
                host_path: "/x".into(),
                ..Mount::default()
            }];
        };
        check(with(&PLAIN, mounted), "give /data the same path");
        with(&ROOT, mounted).unwrap();
    }
}
