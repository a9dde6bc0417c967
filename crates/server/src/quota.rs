//! The storage quota: a bound on the size of all stored objects together.
//!
//! ```text
//!  0                     95 %  quota      115 %       125 %
//!  ├───────────────────────┼─────┼──────────┼───────────┤
//!    everybody writes        alarm  nodes and   controllers  nobody lets an object grow
//!                                   controllers
//! ```
//!
//! Deletions, and updates that do not let an object grow, are always admitted; `verbs/update.rs` has the rules for objects that are
//! being deleted. The bound is checked before a write, not with it: writes in flight may exceed it by what their bodies take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kennel_core::metric::Page;

use crate::audit::Bytes;
use crate::fairness;
use crate::metrics;
use crate::registry::Resource;
use crate::request::{SERVER, User};

/// Some hundred thousand pods; the state is in memory as well.
pub const QUOTA_DEFAULT: Bytes = Bytes(2 << 30);

/// The share of the quota, in percent, from which on the alarm is set.
const ALARM_PERCENT: u64 = 95;
/// The share up to which nodes may write: less than controllers, so that one that is taken over does not stop them.
const NODE_PERCENT: u64 = 115;
/// The share up to which controllers and the server may write.
const SYSTEM_PERCENT: u64 = 125;

/// The kind of client that writes: each has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Writer {
    /// Also nodes and controllers that write events, which nothing depends on.
    User,
    Node,
    /// Controllers and the server.
    System,
}

impl Writer {
    /// The cluster needs what controllers, nodes and the server write, but events.
    pub(crate) fn of(user: &User, row: &Resource) -> Self {
        let components = user.name.strip_prefix(SERVER);
        let is_component = components.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
        if row.plural == "events" && user.name != SERVER {
            Self::User
        } else if user.is_in(fairness::NODES) {
            Self::Node
        } else if is_component || fairness::is_controller(user) {
            Self::System
        } else {
            Self::User
        }
    }

    fn percent(self) -> u64 {
        match self {
            Self::User => 100,
            Self::Node => NODE_PERCENT,
            Self::System => SYSTEM_PERCENT,
        }
    }
}

#[derive(Debug)]
pub struct StorageQuota {
    quota: u64,
    refused: AtomicU64,
    /// Whether the alarm has been logged.
    logged: AtomicBool,
}

/// Why a write is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the storage quota of {quota} is used up: all objects together take {used} bytes, and this write needs {growth} \
     more; delete objects, or raise --storage-quota"
)]
pub struct QuotaExceeded {
    quota: Bytes,
    used: u64,
    growth: u64,
}

/// Nearly all of the quota is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageAlarm {
    pub used: u64,
    pub quota: u64,
}

impl std::fmt::Display for StorageAlarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { used, quota } = self;
        let percent = used.saturating_mul(100) / (*quota).max(1);
        write!(
            f,
            "stored objects take {percent} % of the storage quota of {}",
            Bytes(*quota)
        )
    }
}

impl StorageQuota {
    pub fn new(Bytes(quota): Bytes) -> Self {
        Self {
            quota,
            refused: AtomicU64::new(0),
            logged: AtomicBool::new(false),
        }
    }

    /// Decides on a write that lets an object grow by `growth` bytes while all take `used`.
    pub(crate) fn admit(
        &self,
        used: u64,
        growth: u64,
        writer: Writer,
    ) -> Result<(), QuotaExceeded> {
        self.log_alarm(used);
        if growth == 0 || used.saturating_add(growth) <= share(self.quota, writer.percent()) {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(QuotaExceeded {
            quota: Bytes(self.quota),
            used,
            growth,
        })
    }

    pub(crate) fn alarm(&self, used: u64) -> Option<StorageAlarm> {
        let quota = self.quota;
        (used >= share(quota, ALARM_PERCENT)).then_some(StorageAlarm { used, quota })
    }

    /// Logs the beginning and the end of the alarm, once each.
    fn log_alarm(&self, used: u64) {
        let alarm = self.alarm(used);
        if self.logged.swap(alarm.is_some(), Ordering::Relaxed) == alarm.is_some() {
            return;
        }
        if let Some(alarm) = alarm {
            tracing::error!(
                "{alarm}; writes of users that need more are rejected with 507 at 100 %: delete objects, or raise \
                 --storage-quota"
            );
        } else {
            tracing::info!("stored objects are well below the storage quota again");
        }
    }

    pub(crate) fn show(&self, page: &mut Page) {
        page.number(&metrics::QUOTA_BYTES, self.quota);
        let refused = self.refused.load(Ordering::Relaxed);
        page.number(&metrics::QUOTA_REFUSED, refused);
    }
}

fn share(quota: u64, percent: u64) -> u64 {
    let share = u128::from(quota) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn users_stop_at_the_quota_nodes_above_it_and_the_system_last() {
        let check = |used, growth, expected: [bool; 3]| {
            let quota = StorageQuota::new(Bytes(1000));
            let writers = [Writer::User, Writer::Node, Writer::System];
            let admitted = writers.map(|writer| quota.admit(used, growth, writer).is_ok());
            assert_eq!(admitted, expected, "{used} + {growth}");
        };
        check(0, 1000, [true, true, true]);
        check(0, 1001, [false, true, true]);
        check(999, 1, [true, true, true]);
        check(1000, 1, [false, true, true]);
        check(1149, 1, [false, true, true]);
        check(1150, 1, [false, false, true]);
        check(1249, 1, [false, false, true]);
        check(1250, 1, [false, false, false]);
        check(5000, 0, [true, true, true]);
    }

    #[test]
    fn the_alarm_is_set_before_users_are_refused() {
        let quota = StorageQuota::new(Bytes(1 << 20));
        let used = share(1 << 20, ALARM_PERCENT);
        assert_eq!(quota.alarm(used - 1), None);
        let alarm = quota.alarm(used).unwrap().to_string();
        assert_eq!(
            alarm,
            "stored objects take 94 % of the storage quota of 1Mi"
        );
        assert!(quota.admit(used, 1, Writer::User).is_ok());
    }

    #[test]
    fn the_cluster_may_write_more_than_users_but_events() {
        let check = |name: &str, groups: &[&str], pods: Writer, events: Writer| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let user = User::authenticated(name, groups);
            let found = ["pods", "events"].map(|plural| Writer::of(&user, registry::core(plural)));
            assert_eq!(found, [pods, events], "{name}");
        };
        let user = Writer::User;
        check("alice", &["system:masters"], user, user);
        check("system:kennelx", &[], user, user);
        check("system:node:n1", &["system:nodes"], Writer::Node, user);
        check("system:kube-scheduler", &[], Writer::System, user);
        check("system:kennel:control-plane", &[], Writer::System, user);
        check(SERVER, &[], Writer::System, Writer::System);
    }
}
