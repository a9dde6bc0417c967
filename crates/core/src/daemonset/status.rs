//! The counters of a DaemonSet's status, and what one node adds to them.

use std::ops::{AddAssign, SubAssign};

use super::member::Scene;

/// The counters as the API shows them (spec §6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Nodes that should run a pod.
    pub desired: i64,
    /// Of those, nodes that have one.
    pub current: i64,
    /// Nodes that should not run a pod and have one.
    pub misscheduled: i64,
    /// Desired nodes whose pod is ready.
    pub ready: i64,
    /// Desired nodes whose pod comes from the present template.
    pub updated: i64,
    /// Desired nodes whose pod is available.
    pub available: i64,
    /// The generation these counters were computed for.
    pub observed_generation: i64,
}

impl Counters {
    /// Desired nodes without an available pod.
    pub fn unavailable(&self) -> i64 {
        self.desired - self.available
    }
}

/// What one node adds to the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) desired: bool,
    pub(super) current: bool,
    pub(super) misscheduled: bool,
    pub(super) ready: bool,
    pub(super) updated: bool,
    pub(super) available: bool,
}

impl AddAssign<Share> for Counters {
    fn add_assign(&mut self, share: Share) {
        self.desired += i64::from(share.desired);
        self.current += i64::from(share.current);
        self.misscheduled += i64::from(share.misscheduled);
        self.ready += i64::from(share.ready);
        self.updated += i64::from(share.updated);
        self.available += i64::from(share.available);
    }
}

impl SubAssign<Share> for Counters {
    fn sub_assign(&mut self, share: Share) {
        self.desired -= i64::from(share.desired);
        self.current -= i64::from(share.current);
        self.misscheduled -= i64::from(share.misscheduled);
        self.ready -= i64::from(share.ready);
        self.updated -= i64::from(share.updated);
        self.available -= i64::from(share.available);
    }
}

/// What a node adds (rule 6.1). Its most senior pod represents it, even one that is going away (rule
/// 6.1.1).
pub(super) fn share(scene: &Scene) -> Share {
    let run = scene.fit.is_some_and(|fit| fit.run);
    let Some(pod) = scene.group.first() else {
        return Share {
            desired: run,
            ..Share::default()
        };
    };
    if !run {
        return Share {
            misscheduled: scene.fit.is_some(),
            ..Share::default()
        };
    }
    Share {
        desired: true,
        current: true,
        misscheduled: false,
        ready: pod.ready,
        updated: pod.updated,
        available: pod.available(scene.now),
    }
}
