//! The decision for one node of a staged rollout (R2 to R5), on top of the plain decision for the revision that the node
//! is driven to.

use std::sync::Arc;

use super::super::node_decision::{By, Decision, First, decide};
use super::super::rules::{may_surge, sort_by_seniority};
use super::super::{Claim, Pod, PodWrite, ReferencePlanner, Set};
use super::inputs::{Driven, Inputs, Standing};

type Fit = Option<(bool, bool)>;

impl ReferencePlanner {
    pub(in super::super) fn decide_staged(
        &self,
        set: &Set,
        inputs: &Inputs<'_>,
        name: &Arc<str>,
    ) -> Decision {
        let driven = inputs.driven(name);
        let unreachable = inputs.is_unreachable(name);
        let held = Self::is_held(set, inputs)
            || unreachable
            || driven == Driven::Nowhere
            || inputs.awaits_ready(name);
        let any = inputs.daemons_on(name).any(|daemon| !daemon.leaving);
        let (target, stable) = (inputs.target_fit(name), inputs.stable_fit(name));
        let fit = fit(driven, target, stable, held && any);
        let revision = match (driven, inputs.stable) {
            (Driven::Stable, Some(stable)) => stable,
            _ => inputs.target,
        };
        let updated = |pod: &Pod| held || inputs.is_of(&pod.view, revision);
        let by = By {
            hash: revision.hash(),
            updated: &updated,
        };
        let mut decision = decide(self, set, name, fit, &by);
        decision.hash = Some(revision.hash().into());
        if driven == Driven::Target && inputs.standing != Standing::Direct {
            let may_change = inputs.has_node(name) && !held;
            self.change_eligibility(set, name, &mut decision, target, stable, may_change);
        }
        if unreachable || driven == Driven::Nowhere {
            decision.create = false;
        }
        if driven == Driven::Nowhere && self.group(set, name).is_empty() {
            decision.unavailable = false;
        }
        let judged = self.judge(set, inputs, name);
        if judged.forgiven {
            (decision.unavailable, decision.surges) = (false, false);
        }
        if judged.charged {
            // By the strategy only one of them counts.
            (decision.unavailable, decision.surges) = (true, true);
        }
        // R9.1
        decision.should_run &= !unreachable;
        let first = self.group(set, name).first().copied();
        decision.first = decision.first.map(|shown| First {
            updated: first.is_some_and(|first| inputs.is_of_target(&first.view)),
            ..shown
        });
        if inputs.commands.freeze.is_some() {
            decision.create = false;
            decision.delete.clear();
            (decision.candidate, decision.surplus) = (None, None);
            (decision.gains, decision.loses) = (false, false);
        }
        decision
    }

    /// The pods of a node, the most senior first.
    fn group(&self, set: &Set, name: &Arc<str>) -> Vec<&Pod> {
        let member = (set.view.uid.clone(), Claim::Member);
        let here = |pod: &&Pod| {
            let ended = pod.view.terminal() && pod.view.terminating;
            pod.view.target() == Some(name)
                && !ended
                && self.claim_of(&pod.view).as_ref() == Some(&member)
        };
        let mut group: Vec<&Pod> = self.pods.values().filter(here).collect();
        sort_by_seniority(&mut group);
        group
    }

    /// R2.1: gaining or losing the pod because only one of the two templates selects the node.
    fn change_eligibility(
        &self,
        set: &Set,
        name: &Arc<str>,
        decision: &mut Decision,
        target: Fit,
        stable: Fit,
        may_change: bool,
    ) {
        let (Some(target), Some(stable)) = (target, stable) else {
            return;
        };
        let group = self.group(set, name);
        if target.0 && !stable.0 && group.is_empty() && decision.create {
            (decision.create, decision.unavailable) = (false, false);
            decision.gains = may_change;
        } else if target.0 && !stable.0 && may_surge(set.view.strategy) {
            let inputs = self.inputs(set).unwrap();
            let there = |pod: &&Pod| {
                let mut all = inputs.pods.iter();
                let daemon = all.find(|daemon| daemon.view.uid == pod.view.uid);
                daemon.is_some_and(|daemon| daemon.available && !daemon.leaving)
            };
            decision.surges |= !group.iter().any(there);
        }
        if target.1 || !stable.1 {
            return;
        }
        let inputs = self.inputs(set).unwrap();
        let stays = |pod: &&&Pod| {
            let mut all = inputs.pods.iter();
            let daemon = all.find(|daemon| daemon.view.uid == pod.view.uid);
            daemon.is_some_and(|daemon| daemon.available && !daemon.leaving)
        };
        let Some(pod) = group.iter().find(stays) else {
            return;
        };
        decision.delete.retain(|(uid, _)| *uid != pod.view.uid);
        let earlier = pod.write.filter(|(kind, _)| *kind == PodWrite::Delete);
        let blocked = earlier.is_some_and(|(_, earlier)| earlier.blocks(self.now));
        if may_change && !blocked {
            decision.candidate = Some(pod.view.uid.clone());
            (decision.loses, decision.surplus) = (true, None);
        }
    }
}

/// R2.1: a node is judged by the template that it is driven to. Pods that are held stay.
fn fit(driven: Driven, target: Fit, stable: Fit, stays: bool) -> Fit {
    let either = target.zip(stable.or(target)).map(|(t, s)| t.0 || s.0);
    let fit = match driven {
        Driven::Target => target,
        Driven::Stable => stable,
        Driven::Nowhere => either.map(|run| (run, true)),
    };
    let both = target.zip(stable).is_some_and(|(t, s)| t.0 || s.0);
    fit.map(|(run, keep)| (run || (stays && both), keep || stays))
}
