//! A pod of a slot as the rules of the slot see it, and the slot around it.

use super::event::Millis;
use super::fit::Fit;
use super::status::Share;
use super::view::Phase;

/// A claimed pod of one DaemonSet on one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) id: u32,
    pub(super) bound: bool,
    pub(super) terminating: bool,
    pub(super) phase: Phase,
    /// Its hash label is the current one.
    pub(super) current_hash: bool,
    /// It comes from the present template (rule 5.2).
    pub(super) updated: bool,
    pub(super) ready: bool,
    /// When it becomes or became available; `Millis::MAX` if never.
    pub(super) available_at: Millis,
    /// Its deletion was asked for and will show.
    pub(super) going: bool,
    /// Its deletion was asked for or has failed, and is not to be asked for again before this.
    pub(super) held_until: Millis,
}

impl Member {
    /// Being deleted, as far as we or the API know.
    pub(super) fn leaves(&self) -> bool {
        self.terminating || self.going
    }

    /// Rule 5.3.1.
    pub(super) fn available(&self, now: Millis) -> bool {
        self.ready && self.available_at <= now
    }
}

/// Everything that decides what happens to one DaemonSet on one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) conduct: Conduct,
    /// Whether the node fits; `None` if there is no such node.
    pub(super) fit: Option<Fit>,
    /// The pods here, the most senior first, without those both terminal and terminating (rule
    /// 3.3.1).
    pub(super) group: &'a [Member],
    /// A creation was asked for and will show.
    pub(super) creating: bool,
    /// A creation was asked for or has failed here, and is not to be asked for again before this.
    pub(super) create_held_until: Millis,
    /// An orphan here is about to become a member.
    pub(super) adopting: bool,
    /// Failed pods are left alone until then (rule 3.5).
    pub(super) backoff_until: Millis,
    pub(super) now: Millis,
}

/// What of the DaemonSet's strategy matters on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conduct {
    /// A node may have an old and a new pod (the S of rule 3.4).
    pub(super) surges: bool,
    /// Old pods are replaced.
    pub(super) rolls: bool,
}

/// Why a pod has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// Superfluous, misplaced or old.
    Plain,
    /// It failed (rule 3.5.3).
    Failed,
    /// It succeeded (rule 3.4.1).
    Succeeded,
}

/// A place in the rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing to do here, or it is done without asking for a budget.
    #[default]
    None,
    /// Its turn comes when the budget allows: delete this old pod, or create a new one beside it.
    Candidate(u32),
    /// Its old pod goes as soon as enough others are available (rule 5.5.4).
    Leaving(u32),
}

/// What a node adds to the numbers that hold a rollout back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Burden {
    /// Counts against `maxUnavailable` (rule 5.4.1).
    pub(super) unavailable: bool,
    /// Counts against `maxSurge` (rules 5.5.1 and 5.5.3).
    pub(super) surge: bool,
    /// Has an available pod (rule 5.5.2).
    pub(super) available: bool,
}

/// What should happen in a slot, and what it counts for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) share: Share,
    pub(super) burden: Burden,
    pub(super) create: bool,
    /// Pods to delete now.
    pub(super) doomed: Vec<(u32, Why)>,
    pub(super) role: Role,
    /// When time alone may change any of this; `Millis::MAX` if never.
    pub(super) wake: Millis,
}

impl Verdict {
    /// Dooms a pod once, unless its deletion failed a moment ago.
    pub(super) fn doom(&mut self, pod: &Member, why: Why, now: Millis) {
        let known = self.doomed.iter().any(|(id, _)| *id == pod.id);
        if !pod.leaves() && pod.held_until <= now && !known {
            self.doomed.push((pod.id, why));
        }
    }

    /// Looks again at `at`, if that is to come.
    pub(super) fn wake_at(&mut self, at: Millis, now: Millis) {
        if at > now {
            self.wake = self.wake.min(at);
        }
    }
}

/// Judges a slot.
pub(super) fn judge(scene: &Scene) -> Verdict {
    let mut verdict = Verdict {
        share: super::status::share(scene),
        wake: Millis::MAX,
        ..Verdict::default()
    };
    super::manage::manage(scene, &mut verdict);
    super::rollout::judge(scene, &mut verdict);
    verdict.create &= scene.create_held_until <= scene.now;
    verdict.wake_at(scene.create_held_until, scene.now);
    for pod in scene.group {
        verdict.wake_at(pod.held_until, scene.now);
        if pod.ready && pod.available_at != Millis::MAX {
            verdict.wake_at(pod.available_at, scene.now);
        }
    }
    verdict
}
