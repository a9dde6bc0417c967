//! What must hold for every request of the controller, by what it has seen, and for every state that is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::Timestamp;

use super::super::super::event::Write;
use super::super::super::view::{Before, PodView, Readiness, Waiting};
use super::super::Uid;
use super::super::rules::{may_surge, rollout_limits};
use super::inputs::{Daemon, Driven, Inputs, Standing};
use crate::rollout::condition::Conditions;
use crate::rollout::policy::Setting;
use crate::rollout::state::{Accepted, Phase, Record, State, Verdict};

/// By revision, attempt and stage.
pub(super) type StageKey = (Uid, u32, usize);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Checks {
    /// Nodes whose available pod was deleted for the rollout and that have no other yet, with that pod.
    taken: BTreeMap<Arc<str>, Uid>,
    /// Nodes on which a pod could not be created: after a while they have failed and use no budget.
    refused: BTreeSet<Arc<str>>,
    /// When a state with this time was requested: times are written in whole seconds.
    pub(super) requested: BTreeMap<(Uid, Timestamp), Timestamp>,
    pub(super) bakes: BTreeMap<StageKey, Timestamp>,
    /// Stages whose check has passed (R7).
    pub(super) passed: BTreeSet<StageKey>,
    /// Commands that were taken away: they may be given again.
    pub(super) withdrawn: BTreeSet<(String, String)>,
    /// What was written last.
    records: BTreeMap<Uid, Record>,
    /// The stages that have begun.
    begun: BTreeSet<StageKey>,
}

/// What is broken, and where.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Violation(String);

impl From<&str> for Violation {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

pub(super) type Checked = Result<(), Violation>;

pub(super) fn require(holds: bool, rule: impl FnOnce() -> String) -> Checked {
    if holds {
        Ok(())
    } else {
        Err(Violation(rule()))
    }
}

impl Checks {
    pub(super) fn request(
        &mut self,
        inputs: &Inputs<'_>,
        write: &Write,
        now: Timestamp,
    ) -> Checked {
        match write {
            Write::CreatePod {
                node, blueprint, ..
            } => create(inputs, node, blueprint.hash()),
            Write::DeletePod(pod) => self.delete(inputs, &pod.uid, now),
            Write::WriteRecord {
                revision, record, ..
            } => self.record(inputs, &revision.uid, record, now),
            // R5.8
            Write::DeleteRevision(revision) => {
                let stable = inputs
                    .stable
                    .is_some_and(|stable| stable.uid == revision.uid);
                let kept = stable || inputs.target.uid == revision.uid;
                require(!kept || inputs.uncertain, || {
                    format!("R5.8: {revision:?} deleted in {:?}", inputs.standing)
                })
            }
            _ => Ok(()),
        }
    }

    /// A write has failed, or its controller was killed before it was carried out.
    pub(super) fn lost(&mut self, write: &Write) {
        match write {
            Write::DeletePod(pod) => self.taken.retain(|_, taken| *taken != pod.uid),
            Write::CreatePod { node, .. } => drop(self.refused.insert(node.clone())),
            _ => {}
        }
    }

    fn delete(&mut self, inputs: &Inputs<'_>, uid: &Uid, now: Timestamp) -> Checked {
        require(inputs.commands.freeze.is_none(), || {
            format!("R6: {uid} deleted while frozen")
        })?;
        let pod = inputs.pods.iter().find(|daemon| daemon.view.uid == *uid);
        let Some((pod, name)) = pod.and_then(|pod| Some((pod, pod.view.target()?))) else {
            return Ok(());
        };
        // An earlier request got no answer in time and is repeated.
        if pod.leaving {
            return Ok(());
        }
        if pod.view.terminal()
            || !inputs.nodes.contains_key(name)
            || staying(inputs, name).len() > 1
        {
            return Ok(());
        }
        let driven = inputs.driven(name);
        let fit = match driven {
            Driven::Target => inputs.target_fit(name),
            Driven::Stable => inputs.stable_fit(name),
            Driven::Nowhere => Some((true, true)),
        };
        if fit.is_none_or(|(_, keep)| !keep) {
            return Ok(());
        }
        let of_driven = match driven {
            Driven::Target => inputs.is_of_target(pod.view),
            Driven::Stable => inputs.is_of_stable(pod.view),
            Driven::Nowhere => true,
        };
        require(!of_driven, || {
            format!("needless restart of {uid} on {name}, driven {driven:?}")
        })?;
        require(!inputs.is_unreachable(name), || {
            format!("R4.1: {uid} on {name} deleted, which is unreachable")
        })?;
        require(!inputs.awaits_ready(name), || {
            format!("R4.1: {uid} on {name} deleted, where none can be created")
        })?;
        require(
            inputs.standing == Standing::Plain || !inputs.is_held(),
            || format!("{uid} on {name} deleted although nodes are held"),
        )?;
        if !pod.available || may_surge(inputs.set.strategy) {
            return Ok(());
        }
        self.take(inputs, name, uid, now)
    }

    /// R3.3.
    fn take(&mut self, inputs: &Inputs<'_>, name: &Arc<str>, uid: &Uid, now: Timestamp) -> Checked {
        self.taken
            .retain(|name, uid| is_taken(inputs, name, uid, now));
        let refused = std::mem::take(&mut self.refused);
        self.taken.retain(|name, _| !refused.contains(name));
        let desired = inputs.nodes.keys().filter(|name| is_desired(inputs, name));
        let desired = i64::try_from(desired.count()).unwrap();
        let limits = rollout_limits(inputs.set.strategy, desired);
        let (limit, _) = limits.ok_or("deleted without a budget")?;
        let taken = i64::try_from(self.taken.len()).unwrap();
        require(taken < limit, || {
            format!(
                "{uid} on {name} deleted beyond maxUnavailable {limit}: {:?}",
                self.taken
            )
        })?;
        self.taken.insert(name.clone(), uid.clone());
        Ok(())
    }

    /// R5.6, R8.1: verdicts last, and no stage begins twice.
    pub(super) fn written(&mut self, uid: &Uid, new: &Record) -> Checked {
        let old = self.records.insert(uid.clone(), new.clone());
        let old = old.unwrap_or_default();
        let attempt = |record: &Record| record.state.as_ref().map_or(0, |state| state.attempt);
        let retried = attempt(new) > attempt(&old);
        let lasts = match old.verdict {
            Some(Verdict::Stable) => new.verdict == Some(Verdict::Stable),
            // Without a verdict it was released by a person (R5.6).
            Some(Verdict::Failed) => matches!(new.verdict, Some(Verdict::Failed) | None) || retried,
            Some(Verdict::Progressing | Verdict::Superseded) | None => true,
        };
        require(lasts, || format!("verdict changed: {old:?} to {new:?}"))?;
        let Some(state) = &new.state else {
            return Ok(());
        };
        let key: StageKey = (uid.clone(), state.attempt, state.stage);
        let same_attempt = old.state.as_ref().filter(|s| s.attempt == state.attempt);
        if let Some(before) = same_attempt {
            // A policy may have fewer stages by now.
            let full = state.accepted == Accepted::All;
            // Nor has what a person has released (R5.6) any.
            let released = new.verdict.is_none();
            require(before.stage <= state.stage || full || released, || {
                format!("back to stage {} from {before:?}", state.stage)
            })?;
            if before.stage < state.stage {
                let first = self.begun.insert(key.clone());
                require(first, || format!("stage {} twice", state.stage))?;
            }
            let restarts = before.stage == state.stage
                && before.phase == Phase::Baking
                && state.phase == Phase::Updating
                && !full;
            require(!restarts, || format!("bake started over: {state:?}"))?;
        }
        match state.phase {
            Phase::Baking if same_attempt.is_none_or(|s| s.phase != Phase::Baking) => {
                let at = self.requested.get(&(uid.clone(), state.since)).copied();
                let twice = self.bakes.insert(key, at.unwrap_or(state.since));
                require(twice.is_none(), || format!("baked twice: {state:?}"))
            }
            // A person may accept its failures; the bake begins again then.
            Phase::Paused => {
                self.bakes.remove(&key);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// R9.1.
    pub(super) fn conditions(inputs: &Inputs<'_>, found: &Conditions) -> Checked {
        let shown = |kind: &str| found.get(kind).is_some_and(|condition| condition.status);
        let reason = |kind: &str| found.get(kind).map_or("", |c| c.reason.as_str());
        let expected = expected_conditions(inputs);
        let Some((progressing, stalled)) = expected else {
            return require(found.is_empty(), || {
                format!("conditions without a policy: {found:?}")
            });
        };
        let right = shown("Progressing") == progressing
            && shown("Reconciling") == progressing
            && shown("Stalled") == stalled.is_some()
            && stalled.is_none_or(|stalled| reason("Stalled") == stalled);
        let right = right || inputs.uncertain;
        require(right, || {
            format!(
                "R9.1: {found:?} in {:?} of {:?} instead of {expected:?}",
                inputs.phase(),
                inputs.standing
            )
        })
    }
}

/// `Progressing`, and the reason of `Stalled` if that is true.
fn expected_conditions(inputs: &Inputs<'_>) -> Option<(bool, Option<&'static str>)> {
    if inputs.only_halts() {
        return None;
    }
    if inputs.commands.freeze.is_some() {
        return Some((false, Some("Frozen")));
    }
    if matches!(inputs.setting, Setting::Invalid(_)) {
        return Some((false, Some("PolicyInvalid")));
    }
    let code = inputs.state().and_then(|state| state.reason.as_ref());
    let code = code.map_or("", |reason| reason.code.as_str());
    let paused = inputs.commands.pause.is_some();
    Some(match (inputs.standing, inputs.phase()) {
        (Standing::Direct, _) => (false, None),
        (Standing::Back, None | Some(Phase::Held)) => (false, Some("RolledBack")),
        (Standing::Unstarted, None) => (true, None),
        (_, Some(Phase::Updating | Phase::Baking)) => (!paused, None),
        (_, Some(Phase::AwaitingPromotion | Phase::RollingBack)) => (true, None),
        (_, Some(Phase::Paused)) if code == "DeadlineExceeded" => (false, Some("DeadlineExceeded")),
        (_, Some(Phase::Paused)) => (false, Some("PausedOnFailure")),
        (_, Some(Phase::Held)) => (false, Some("RolledBack")),
        (_, Some(Phase::Complete) | None) => (false, None),
    })
}

fn staying<'a, 'b>(inputs: &'b Inputs<'a>, name: &'b str) -> Vec<&'b Daemon<'a>> {
    let here = inputs.daemons_on(name);
    here.filter(|daemon| !daemon.leaving).collect()
}

/// R2, R3.1, R5.4: which revision a node may get.
fn create(inputs: &Inputs<'_>, name: &Arc<str>, hash: &str) -> Checked {
    let frozen = inputs.commands.freeze.is_some();
    require(!frozen, || format!("R6: {name} created while frozen"))?;
    let target = inputs.target.hash();
    if inputs.standing == Standing::Plain {
        return require(hash == target, || format!("{name} got {hash}"));
    }
    let stable = inputs.stable.map(crate::daemonset::history::Revision::hash);
    let mut here = inputs.daemons_on(name);
    let had_target = here.any(|daemon| inputs.is_of_target(daemon.view));
    let allowed = match inputs.standing {
        Standing::Plain | Standing::Direct => vec![Some(target)],
        Standing::Back | Standing::Unstarted => vec![stable],
        Standing::Staged if inputs.is_reached(name) => vec![Some(target)],
        Standing::Staged if had_target => vec![Some(target), stable],
        Standing::Staged => vec![stable],
    };
    let counted =
        inputs.counts_pods_for_stable() && hash != target && inputs.by_hash(hash).is_some();
    require(
        allowed.contains(&Some(hash)) || inputs.uncertain || counted,
        || {
            format!(
                "{name} got {hash} instead of {allowed:?} of {:?} {:?}",
                inputs.standing, inputs.record
            )
        },
    )?;
    require(!inputs.is_unreachable(name), || {
        format!("R4.1: created on {name}, which is unreachable")
    })?;
    if counted {
        return Ok(());
    }
    let fit = inputs.fit_by_hash(name, hash);
    let fits = fit.is_some_and(|(run, _)| run) || inputs.daemons_on(name).next().is_some();
    require(fits, || {
        let stable = stable.unwrap_or("none");
        format!(
            "R2.1: {name} got {hash} and is not selected; the target is {target}, stable {stable}"
        )
    })
}

fn is_desired(inputs: &Inputs<'_>, name: &str) -> bool {
    let runs = |fit: Option<(bool, bool)>| fit.is_some_and(|(run, _)| run);
    let fits = match inputs.driven(name) {
        Driven::Target => runs(inputs.target_fit(name)),
        Driven::Stable => runs(inputs.stable_fit(name)),
        Driven::Nowhere => runs(inputs.target_fit(name)) || runs(inputs.stable_fit(name)),
    };
    fits && !inputs.is_unreachable(name)
}

/// Whether a node still lacks the pod that was deleted for the rollout, and its failure does not excuse that.
fn is_taken(inputs: &Inputs<'_>, name: &Arc<str>, deleted: &Uid, now: Timestamp) -> bool {
    let here = staying(inputs, name);
    // Rule 3.8.1 of DaemonSets: its deletion has not shown in time, so it counts as there.
    if here.iter().any(|daemon| daemon.view.uid == *deleted) {
        return false;
    }
    let served = here.iter().any(|daemon| daemon.available);
    let fails = here.iter().any(|d| is_failing(inputs, d.view, now));
    let down = inputs.skips_down_nodes() && inputs.readiness(name) != Readiness::Ready;
    // R2: without stable, a node that is not admitted gets nothing, and so it is not in between.
    let without_stable = inputs.driven(name) == Driven::Nowhere;
    // R2.1: nor is one that stable does not select, before it gains its pod.
    let runs = |fit: Option<(bool, bool)>| fit.is_some_and(|(run, _)| run);
    let gains = here.is_empty() && inputs.stable.is_some() && !runs(inputs.stable_fit(name));
    let waits = without_stable || gains;
    is_desired(inputs, name) && !served && !fails && !down && !waits
}

/// Any sign of R5.1 or R5.5.
pub(super) fn is_failing(inputs: &Inputs<'_>, pod: &PodView, now: Timestamp) -> bool {
    let health = &pod.health;
    pod.terminal()
        || health.restarts > inputs.policy.max_restarts
        || health.waiting != Waiting::No
        || health.before == Before::Failing
        || now.saturating_since(pod.created) >= inputs.policy.healthy_deadline
}

/// The stage of a state, by the present policy: how long it bakes, and whether it waits for a person.
pub(super) fn stage_of(inputs: &Inputs<'_>, state: &State) -> (i64, bool) {
    // R1.3: a policy that has become shorter than the rollout has come.
    let number = state.stage.min(inputs.policy.stages.len());
    let index = number.checked_sub(1);
    let stage = index.map(|index| &inputs.policy.stages[index]);
    let bake = stage.map_or(0, |stage| stage.bake.as_millis());
    (
        i64::try_from(bake).unwrap(),
        stage.is_some_and(|stage| stage.manual),
    )
}
