//! Which devices a container may use, in the form of `devices.allow`: those that every container has in its `/dev`, and those
//! that it asks for as devices or volumes.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use crate::runtime::ContainerConfig;

/// As in container runtimes. Creating a node is allowed, using it is not.
const USUAL: [&str; 10] = [
    "c *:* m",
    "b *:* m",
    "c 1:3 rwm",   // null
    "c 1:5 rwm",   // zero
    "c 1:7 rwm",   // full
    "c 1:8 rwm",   // random
    "c 1:9 rwm",   // urandom
    "c 5:0 rwm",   // tty
    "c 5:2 rwm",   // ptmx
    "c 136:* rwm", // pts
];

/// `None` if it may use all: the host's `/dev`, or a part of it, is one of its volumes.
pub(super) fn of(config: &ContainerConfig) -> Option<Vec<String>> {
    let mut rules: Vec<String> = USUAL.map(str::to_owned).to_vec();
    for device in &config.devices {
        rules.extend(rule(&device.host_path, &device.permissions));
    }
    for mount in &config.mounts {
        if mount.host_path.starts_with("/dev") && mount.host_path.is_dir() {
            return None;
        }
        rules.extend(rule(&mount.host_path, ""));
    }
    Some(rules)
}

/// None if it is no device node.
fn rule(path: &Path, permissions: &str) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let kind = match metadata.file_type() {
        kind if kind.is_char_device() => 'c',
        kind if kind.is_block_device() => 'b',
        _ => return None,
    };
    let (major, minor) = (
        rustix::fs::major(metadata.rdev()),
        rustix::fs::minor(metadata.rdev()),
    );
    let permissions = if permissions.is_empty() {
        "rwm"
    } else {
        permissions
    };
    Some(format!("{kind} {major}:{minor} {permissions}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Device, Mount};

    #[test]
    fn what_a_container_asks_for_is_allowed() {
        let mount = |path: &str| Mount {
            host_path: path.into(),
            container_path: "/x".into(),
            ..Mount::default()
        };
        let with = |mounts: &[Mount]| ContainerConfig {
            mounts: mounts.to_vec(),
            devices: vec![Device {
                container_path: "/dev/zero".into(),
                host_path: "/dev/zero".into(),
                permissions: "r".to_owned(),
            }],
            ..ContainerConfig::default()
        };
        let more = |config: &ContainerConfig| of(config).map(|rules| rules[USUAL.len()..].to_vec());
        assert_eq!(more(&ContainerConfig::default()), Some(Vec::new()));
        let asked = ["c 1:5 r", "c 1:3 rwm"].map(str::to_owned).to_vec();
        let volumes = [mount("/etc"), mount("/dev/null")];
        assert_eq!(more(&with(&volumes)), Some(asked));
        assert_eq!(more(&with(&[mount("/dev")])), None);
    }
}
