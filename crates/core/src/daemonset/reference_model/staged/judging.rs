//! Health and failures of nodes (R2, R4, R5.1), in tenths of a second.

use std::sync::Arc;
use std::time::Duration;

use super::super::super::view::{Before, Phase, Readiness, Waiting};
use super::super::{Down, ReferencePlanner, Set, Uid};
use super::inputs::{Daemon, Inputs, Standing};
use crate::rollout::policy::DownNodes;
use crate::rollout::state::Accepted;

/// Sums over the rollout's nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) nodes: usize,
    /// The healthy ones that the present stage takes by label.
    pub(super) labelled: usize,
    pub(super) pending: usize,
    pub(super) failed: usize,
    pub(super) on_target: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Problem {
    #[default]
    None,
    Waiting(Waiting),
    CannotCreate,
}

/// What the model remembers of a node.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Watched {
    judged: Option<Uid>,
    /// How long the pod was not ready while its node was up, before the present run.
    not_ready: u64,
    /// Since when it is not ready.
    since: Option<u64>,
    problem: Problem,
    problem_since: u64,
    /// R4.2: what was decided when the node had been down for two minutes.
    blamed: Option<bool>,
    /// R5.2: it was healthy in this attempt.
    pub(super) was_healthy: bool,
}

/// What a node counts for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judged {
    pub(super) healthy: bool,
    pub(super) pending: bool,
    pub(super) failed: Option<&'static str>,
    pub(super) on_target: bool,
    /// It uses no budget.
    pub(super) forgiven: bool,
    /// R4.2: it uses budget, whatever taints it has.
    pub(super) charged: bool,
}

fn tenths(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis().div_ceil(100)).unwrap()
}

/// As a time that may lie before the start.
pub(in super::super) fn signed(tick: u64) -> i64 {
    i64::try_from(tick).unwrap()
}

impl ReferencePlanner {
    pub(in super::super) fn tick(&self) -> u64 {
        let millis = self.now.saturating_since(self.started).as_millis();
        u64::try_from(millis / 100).unwrap()
    }

    /// R4.2: notes when nodes went down. A new controller reads it off those that it finds down.
    pub(in super::super) fn note_readiness(&mut self, before: &[(Arc<str>, Readiness)]) {
        let tick = self.tick();
        for (name, node) in &self.nodes {
            let old = before.iter().find(|(other, _)| other == name);
            if node.ready == Readiness::Ready {
                self.down.remove(name);
                continue;
            }
            let (seen, at) = (tick, signed(tick));
            let down = match old {
                Some((_, Readiness::Ready)) => Down {
                    at,
                    shown: None,
                    seen,
                },
                None if !self.synced && node.ready_changed.is_some() => {
                    let shown = node.ready_changed;
                    let age = shown.map_or(0, |shown| self.now.millis_since(shown).max(0));
                    Down {
                        at: at - age / 100,
                        shown,
                        seen,
                    }
                }
                _ => continue,
            };
            self.down.insert(name.clone(), down);
        }
        let nodes = &self.nodes;
        self.down.retain(|name, _| nodes.contains_key(name));
    }

    fn target_pod<'a, 'b>(inputs: &'b Inputs<'a>, name: &'b str) -> Option<&'b Daemon<'a>> {
        let mut here = inputs.daemons_on(name);
        here.find(|daemon| !daemon.leaving && inputs.is_of_target(daemon.view))
    }

    pub(in super::super) fn watch_nodes(&mut self, uid: &Uid) {
        let set = &self.sets[uid];
        let Some(inputs) = self.inputs(set) else {
            return;
        };
        let rollout = set.rollout.as_ref().unwrap();
        let mut names: Vec<Arc<str>> = self.nodes.keys().cloned().collect();
        let targets = inputs.pods.iter().filter_map(|daemon| daemon.view.target());
        names.extend(targets.cloned());
        let watched = names.into_iter().map(|name| {
            let old = rollout.nodes.get(&name).cloned().unwrap_or_default();
            let new = self.watch(set, &inputs, &name, old);
            (name, new)
        });
        let watched = watched.collect();
        self.set_mut(uid).rollout.as_mut().unwrap().nodes = watched;
    }

    fn watch(&self, set: &Set, inputs: &Inputs<'_>, name: &Arc<str>, mut node: Watched) -> Watched {
        let tick = self.tick();
        let pod = Self::target_pod(inputs, name);
        let judged = pod.map(|pod| pod.view.uid.clone());
        if node.judged != judged {
            // R5.1: a wait starts when the model first sees the pod, also one that a controller before has waited for.
            (node.judged, node.not_ready, node.since) = (judged, 0, None);
        }
        if pod.is_some_and(|pod| pod.available) {
            (node.not_ready, node.since) = (0, None);
        }
        let admitted = inputs.has_node(name) && inputs.is_admitted(name);
        let up = inputs.readiness(name) == Readiness::Ready
            || inputs.policy.down_nodes == DownNodes::Count
            || inputs.only_halts();
        let runs = admitted && up && pod.is_some_and(|pod| pod.view.ready_since.is_none());
        match (node.since, runs) {
            (None, true) => node.since = Some(tick.max(1)),
            (Some(since), false) => {
                node.not_ready += tick.saturating_sub(since);
                node.since = None;
            }
            _ => {}
        }
        let key = (set.view.uid.clone(), name.clone());
        let refused = self
            .creates
            .get(&key)
            .is_some_and(super::super::pacing::Requested::has_failed);
        let problem = match pod {
            Some(pod) if pod.view.health.waiting != Waiting::No => {
                Problem::Waiting(pod.view.health.waiting)
            }
            None if admitted && refused => Problem::CannotCreate,
            _ => Problem::None,
        };
        if node.problem != problem {
            (node.problem, node.problem_since) = (problem, tick);
        }
        node.blamed = self.suspected_since(inputs, name).map(|since| {
            let earlier = node.blamed;
            earlier.unwrap_or_else(|| self.is_alone(set, inputs, since))
        });
        node
    }

    /// R5.1, without R4.2.
    fn cause(&self, inputs: &Inputs<'_>, name: &str, node: &Watched) -> Option<&'static str> {
        let tick = self.tick();
        let pod = Self::target_pod(inputs, name);
        if pod.is_some_and(|pod| pod.view.phase == Phase::Failed) {
            return Some("PodFailed");
        }
        let restarts = pod.map_or(0, |pod| pod.view.health.restarts);
        if restarts > inputs.policy.max_restarts {
            return Some("TooManyRestarts");
        }
        let lasts = |tenths: u64| node.problem_since + tenths <= tick;
        let failure = match node.problem {
            Problem::None => None,
            Problem::CannotCreate => lasts(300).then_some("CannotCreatePod"),
            Problem::Waiting(Waiting::ImagePull | Waiting::No) => {
                lasts(1_200).then_some("ImagePullBackOff")
            }
            Problem::Waiting(waiting) => lasts(300).then_some(match waiting {
                Waiting::InvalidImageName => "InvalidImageName",
                Waiting::CreateContainerConfigError => "CreateContainerConfigError",
                Waiting::CreateContainerError => "CreateContainerError",
                _ => "RunContainerError",
            }),
        };
        let run = node.since.map_or(0, |since| tick.saturating_sub(since));
        let late = node.not_ready + run >= tenths(inputs.policy.healthy_deadline);
        // R4.1: no stage waits for a node that is down.
        let waited_for = inputs.readiness(name) == Readiness::Ready || !inputs.skips_down_nodes();
        failure.or((late && waited_for).then_some("NotAvailable"))
    }

    /// R4.2: when a node went down that is still down after two minutes, and that the target may have taken down.
    fn suspected_since(&self, inputs: &Inputs<'_>, name: &Arc<str>) -> Option<i64> {
        // R5: only pods on admitted nodes are judged. A stable target has its verdict.
        let judged = inputs.standing == Standing::Staged && inputs.is_admitted(name);
        let pod = Self::target_pod(inputs, name).filter(|_| judged)?;
        let node = self.nodes.get(name)?;
        let down = *self.down.get(name)?;
        let window = signed(tenths(inputs.policy.blame_window));
        let age = match down.shown {
            Some(shown) => shown.millis_since(pod.view.created),
            None => (down.at - self.pods[&pod.view.uid].created_tick) * 100,
        };
        let in_window = (0..=window * 100).contains(&age);
        let excused = node.unschedulable || pod.view.health.before == Before::Down;
        (in_window && !excused && down.seen + 1_200 <= self.tick()).then_some(down.at)
    }

    /// R4.2: fewer nodes without the target than with it went down in the same window.
    fn is_alone(&self, set: &Set, inputs: &Inputs<'_>, since: i64) -> bool {
        let from = since - signed(tenths(inputs.policy.blame_window));
        let down = self.down.iter().filter(|(_, down)| down.at >= from);
        let down = down.filter(|(name, _)| inputs.has_node(name));
        let rollout = set.rollout.as_ref().unwrap();
        let has = |name: &Arc<str>| rollout.nodes.get(name).is_some_and(|n| n.judged.is_some());
        let (with, without): (Vec<_>, Vec<_>) = down.partition(|(name, _)| has(name));
        without.len() < with.len()
    }

    pub(super) fn judge(&self, set: &Set, inputs: &Inputs<'_>, name: &Arc<str>) -> Judged {
        let rollout = set.rollout.as_ref().unwrap();
        let node = rollout.nodes.get(name).cloned().unwrap_or_default();
        // The pod may be another than when the node was looked at last.
        let node = self.watch(set, inputs, name, node);
        let admitted = inputs.has_node(name) && inputs.is_admitted(name);
        let pod = Self::target_pod(inputs, name);
        let blamed = node.blamed == Some(true);
        let blame = blamed.then_some("NodeDown");
        let excused = pod.is_some_and(|pod| pod.view.health.before == Before::Failing);
        let cause = self.cause(inputs, name, &node).or(blame);
        let failed = cause.filter(|_| admitted && !excused);
        let wanted = inputs.target_selects(name);
        let kept_away = wanted && !inputs.target_fit(name).is_some_and(|(run, _)| run);
        let healthy = if wanted {
            pod.is_some_and(|pod| pod.available)
        } else {
            inputs
                .daemons_on(name)
                .all(|daemon| daemon.view.terminating)
        };
        let mut here = inputs.daemons_on(name);
        let remains = here.any(|d| !d.view.terminating && inputs.is_of_target(d.view));
        let down = inputs.readiness(name) != Readiness::Ready && !blamed;
        let skipped = inputs.skips_down_nodes() && down;
        // R5.3: a person may have accepted the failures.
        let accepted = inputs.state().map(|state| state.accepted);
        let accepted = !matches!(accepted, None | Some(Accepted::None | Accepted::Nodes(0)));
        let charged = blamed && failed.is_some() && !accepted;
        Judged {
            healthy: admitted && healthy,
            pending: admitted && !healthy && !skipped && !kept_away && failed.is_none() && !excused,
            failed,
            on_target: remains && !inputs.is_unreachable(name),
            forgiven: !charged && (skipped || failed.is_some() || (admitted && excused)),
            charged,
        }
    }

    pub(super) fn totals(&self, set: &Set, inputs: &Inputs<'_>) -> Totals {
        let rollout = set.rollout.as_ref().unwrap();
        let names = || rollout.nodes.keys();
        let all: Vec<Judged> = names().map(|name| self.judge(set, inputs, name)).collect();
        let labelled = names().zip(&all);
        let labelled = labelled.filter(|(name, j)| j.healthy && inputs.is_labelled(name));
        let count = |which: &dyn Fn(&Judged) -> bool| all.iter().filter(|j| which(j)).count();
        Totals {
            nodes: inputs.rollout_nodes().len(),
            labelled: labelled.count(),
            pending: count(&|j| j.pending),
            failed: count(&|j| j.failed.is_some()),
            on_target: count(&|j| j.on_target),
        }
    }
}
