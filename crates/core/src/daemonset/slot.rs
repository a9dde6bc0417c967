//! One DaemonSet on one node: what it adds to the counters, and what should happen there.
//!
//! Pure functions over a slot's pods. Pods that are both terminal and terminating must have been
//! left out (rule 3.3.1); remembering what was already asked for is the planner's part.

use std::sync::Arc;

use super::fit::Fit;
use super::pod::is_updated;
use super::status::Share;
use super::view::{DaemonSetView, PodView, Seconds};

/// Milliseconds since the epoch: the planner's time.
pub(super) type Millis = i64;

/// Until when not to ask again for what was asked already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) until: Millis,
    pub(super) failures: u32,
    /// The request may still show effect; otherwise it is known to have failed.
    pub(super) in_flight: bool,
}

/// How long a request may take to show up in a watch before it is thought lost (upstream's
/// timeout of expectations).
pub(super) const EXPECTATION_MS: Millis = 5 * 60 * 1000;
const RETRY_MS_FIRST: Millis = 200;
const RETRY_MS_MAX: Millis = 60 * 1000;

impl Wait {
    /// A request has been made.
    pub(super) fn requested(now: Millis, before: Option<Self>) -> Self {
        Self {
            until: now + EXPECTATION_MS,
            failures: before.map_or(0, |wait| wait.failures),
            in_flight: true,
        }
    }

    /// A request has failed: wait longer each time.
    pub(super) fn failed(now: Millis, before: Option<Self>) -> Self {
        let failures = before.map_or(0, |wait| wait.failures);
        let delay = RETRY_MS_FIRST << failures.min(16);
        Self {
            until: now + delay.min(RETRY_MS_MAX),
            failures: failures + 1,
            in_flight: false,
        }
    }

    /// Is it still too early to ask (again)?
    pub(super) fn holds(wait: Option<Self>, now: Millis) -> bool {
        wait.is_some_and(|wait| now < wait.until)
    }
}

/// A DaemonSet on a node.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Whether the node fits; `None` if there is no such node.
    pub(super) fit: Option<Fit>,
    /// Uids of the pods here: nearly always none or one.
    pub(super) pods: Vec<Arc<str>>,
    /// A creation that was asked for.
    pub(super) wait: Option<Wait>,
    /// What it adds to the counters at present.
    pub(super) share: Share,
}

/// What should happen in a slot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) create: bool,
    /// Uids of pods to delete, the most senior first.
    pub(super) delete: Vec<Arc<str>>,
}

/// The decision per node (rules 3.4 and 3.6.1).
pub(super) fn wanted(fit: Option<Fit>, pods: &[&PodView]) -> Wanted {
    let mut active: Vec<&PodView> = pods.iter().copied().filter(|p| !p.terminating).collect();
    active.sort_by(|a, b| a.seniority().cmp(&b.seniority()));
    let doomed = match fit {
        None => {
            active.retain(|pod| pod.bound_to.is_none());
            active.as_slice()
        }
        Some(fit) if fit.keep => active.get(1..).unwrap_or_default(),
        Some(_) => active.as_slice(),
    };
    Wanted {
        create: fit.is_some_and(|fit| fit.run) && pods.is_empty(),
        delete: doomed.iter().map(|pod| pod.uid.clone()).collect(),
    }
}

/// What the slot adds to the counters (rule 6.1), and when that changes by time alone.
pub(super) fn share(
    daemon_set: &DaemonSetView,
    hash: &str,
    fit: Option<Fit>,
    pods: &[&PodView],
    now: Millis,
) -> (Share, Option<Millis>) {
    let (Some(fit), representative) = (fit, pods.iter().min_by_key(|pod| pod.seniority())) else {
        return (Share::default(), None);
    };
    let Some(pod) = representative else {
        let desired = fit.run;
        return (
            Share {
                desired,
                ..Share::default()
            },
            None,
        );
    };
    if !fit.run {
        let misscheduled = true;
        return (
            Share {
                misscheduled,
                ..Share::default()
            },
            None,
        );
    }
    let available_at = pod
        .available_at(daemon_set.min_ready_seconds)
        .map(to_millis);
    let share = Share {
        desired: true,
        current: true,
        misscheduled: false,
        ready: pod.ready_since.is_some(),
        updated: is_updated(pod, hash, daemon_set.template_generation),
        available: available_at.is_some_and(|at| at <= now),
    };
    (share, available_at.filter(|at| *at > now))
}

fn to_millis(seconds: Seconds) -> Millis {
    seconds.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{daemon_set, pod};
    use super::*;

    const RUN: Option<Fit> = Some(Fit {
        run: true,
        keep: true,
    });
    const KEEP: Option<Fit> = Some(Fit {
        run: false,
        keep: true,
    });
    const NOT: Option<Fit> = Some(Fit {
        run: false,
        keep: false,
    });

    fn bound(name: &str, created: i64) -> PodView {
        PodView {
            created,
            ..pod(name, "ds", "n1")
        }
    }

    fn unbound(name: &str, created: i64) -> PodView {
        let pinned_to = Some("n1".into());
        PodView {
            bound_to: None,
            pinned_to,
            ..bound(name, created)
        }
    }

    fn terminating(pod: PodView) -> PodView {
        PodView {
            terminating: true,
            ..pod
        }
    }

    fn check(fit: Option<Fit>, pods: &[PodView], create: bool, delete: &[&str]) {
        let pods: Vec<&PodView> = pods.iter().collect();
        let found = wanted(fit, &pods);
        let names: Vec<String> = found.delete.iter().map(|u| u.replace("uid-", "")).collect();
        assert_eq!(
            (found.create, names),
            (create, delete.iter().map(ToString::to_string).collect())
        );
    }

    #[test]
    fn s3_4_decision_per_node() {
        check(RUN, &[], true, &[]);
        check(RUN, &[bound("a", 1)], false, &[]);
        check(KEEP, &[], false, &[]);
        check(KEEP, &[bound("a", 1)], false, &[]);
        check(NOT, &[bound("a", 1), unbound("b", 2)], false, &["a", "b"]);
        check(NOT, &[terminating(bound("a", 1))], false, &[]);
    }

    #[test]
    fn s3_4_2_the_oldest_bound_pod_is_kept() {
        check(
            RUN,
            &[bound("young", 2), bound("old", 1)],
            false,
            &["young"],
        );
        check(
            RUN,
            &[unbound("older", 1), bound("bound", 2)],
            false,
            &["older"],
        );
        check(
            RUN,
            &[bound("b", 1), bound("a", 1), bound("c", 1)],
            false,
            &["b", "c"],
        );
        check(KEEP, &[bound("b", 1), bound("a", 1)], false, &["b"]);
    }

    #[test]
    fn s3_4_2_no_creation_while_any_pod_is_there() {
        check(RUN, &[terminating(bound("a", 1))], false, &[]);
        check(
            RUN,
            &[terminating(bound("a", 1)), bound("b", 2)],
            false,
            &[],
        );
    }

    #[test]
    fn s3_6_1_only_unbound_pods_of_vanished_nodes_are_deleted() {
        check(None, &[bound("a", 1), unbound("b", 2)], false, &["b"]);
    }

    fn counted(fit: Option<Fit>, pods: &[PodView], now: Millis) -> (Share, Option<Millis>) {
        let mut view = daemon_set("ds");
        view.min_ready_seconds = 10;
        let pods: Vec<&PodView> = pods.iter().collect();
        share(&view, "hash", fit, &pods, now)
    }

    #[test]
    fn s6_1_what_a_node_adds() {
        let desired = Share {
            desired: true,
            ..Share::default()
        };
        assert_eq!(counted(RUN, &[], 0).0, desired);
        assert_eq!(counted(KEEP, &[], 0).0, Share::default());
        let misscheduled = Share {
            misscheduled: true,
            ..Share::default()
        };
        assert_eq!(counted(KEEP, &[bound("a", 1)], 0).0, misscheduled);
        assert_eq!(counted(None, &[bound("a", 1)], 0).0, Share::default());
    }

    #[test]
    fn s5_3_1_available_after_min_ready_seconds() {
        let ready = PodView {
            ready_since: Some(100),
            ..bound("a", 1)
        };
        let (early, deadline) = counted(RUN, std::slice::from_ref(&ready), 109_999);
        assert!(early.ready && !early.available);
        assert_eq!(deadline, Some(110_000));
        let (late, deadline) = counted(RUN, &[ready], 110_000);
        assert!(late.available);
        assert_eq!(deadline, None);
    }

    #[test]
    fn s6_1_1_the_most_senior_pod_represents_the_node() {
        let ready = PodView {
            ready_since: Some(0),
            ..bound("young", 2)
        };
        let (share, _) = counted(RUN, &[ready, terminating(bound("old", 1))], 1_000_000);
        assert!(share.current && !share.ready);
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_a_bound() {
        let first = Wait::failed(0, None);
        let second = Wait::failed(0, Some(Wait::requested(0, Some(first))));
        assert_eq!((first.until, second.until), (200, 400));
        let many = Wait {
            until: 0,
            failures: 1000,
            in_flight: false,
        };
        assert_eq!(Wait::failed(0, Some(many)).until, RETRY_MS_MAX);
    }
}
