//! What this machine lets us do, found out once at start.

use std::path::PathBuf;

use kennel_shim::cgroup::Cgroups;
use rustix::thread::CapabilitySet;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    /// Containers get mounts, processes and users of their own.
    pub(super) root: bool,
    /// The agent's own things: keys, and the secrets of all pods.
    pub(super) hidden: PathBuf,
    /// Containers are counted and bounded, here.
    pub(super) cgroups: Option<Cgroups>,
}

impl Rights {
    /// Finds out, and says what is missing.
    pub(super) fn find(hidden: PathBuf) -> Self {
        let root = rustix::process::geteuid().is_root() && may_mount();
        if !root {
            tracing::warn!(
                "not root: containers get no mounts, no users and no view of processes of their own, \
                 and pods that ask for such are refused"
            );
        }
        let cgroups = Cgroups::find();
        let cgroups = match cgroups.probe() {
            Ok(()) => Some(cgroups),
            Err(why) => {
                tracing::warn!(
                    "resource limits of containers have no effect, and none is measured: {why}"
                );
                None
            }
        };
        Self {
            root,
            hidden,
            cgroups,
        }
    }
}

/// Root of a container of somebody else's may not.
fn may_mount() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP | CapabilitySet::SETUID;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
