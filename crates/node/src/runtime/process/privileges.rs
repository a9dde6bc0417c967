//! The privileges of the agent, detected at startup.

use std::path::PathBuf;

use kennel_shim::cgroup::Cgroups;
use rustix::thread::CapabilitySet;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Privileges {
    /// We may create mount and PID namespaces and change users.
    pub(super) root: bool,
    /// The agent's data directory, which contains keys and the secrets of all pods; containers do not see it.
    pub(super) hidden: PathBuf,
    /// `None` if we may not create cgroups.
    pub(super) cgroups: Option<Cgroups>,
}

impl Privileges {
    /// Detects the privileges, and logs what is missing.
    pub(super) fn detect(hidden: PathBuf) -> Self {
        let root = rustix::process::geteuid().is_root() && may_mount();
        if !root {
            tracing::warn!(
                "not root: containers get no mount and PID namespaces and no users of their own, and pods that need them \
                 are rejected"
            );
        }
        let cgroups = Cgroups::find();
        let cgroups = match cgroups.probe() {
            Ok(()) => Some(cgroups),
            Err(why) => {
                tracing::warn!(
                    "resource limits of containers have no effect, and usage is not measured: {why}"
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

/// Root in a container may lack the capabilities.
fn may_mount() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP | CapabilitySet::SETUID;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
