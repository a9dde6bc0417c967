//! The filters, in upstream's order; the first that rejects a node decides.

use std::sync::Arc;

use super::affinity_index::{AffinityConflict, AffinityContext};
use super::node::{Node, NodeInfo, Usage};
use super::ports::HostPort;
use super::rejection::{Reason, Rejection};
use super::requirements::Class;
use super::resources::Resources;
use crate::lifecycle::taints::UNSCHEDULABLE;
use crate::taint::{Taint, TaintEffect, first_untolerated};

/// The pod to schedule.
pub(super) struct Candidate<'a> {
    pub(super) class: &'a Arc<Class>,
    /// `None` if pod (anti-)affinity does not matter to it.
    pub(super) affinity: Option<AffinityContext<'a>>,
}

impl Candidate<'_> {
    /// Runs the filters for a node with this usage. `gone` are classes of pods there that count as evicted.
    pub(super) fn filter(
        &self,
        node: &Node,
        usage: &Usage,
        gone: &[&Arc<Class>],
    ) -> Result<(), Rejection> {
        let Some(info) = &node.info else {
            return Err(Rejection::unresolvable(Reason::NodeAffinity));
        };
        self.filter_by_node(info)?;
        self.filter_by_ports(usage)?;
        self.filter_by_resources(info, usage)?;
        let Some(affinity) = &self.affinity else {
            return Ok(());
        };
        match affinity.conflict(node, gone) {
            None => Ok(()),
            Some(AffinityConflict::Affinity) => Err(Rejection::unresolvable(Reason::PodAffinity)),
            Some(AffinityConflict::AntiAffinity) => {
                Err(Rejection::resolvable_by_preemption(Reason::PodAntiAffinity))
            }
            Some(AffinityConflict::ExistingAntiAffinity) => Err(
                Rejection::resolvable_by_preemption(Reason::ExistingAntiAffinity),
            ),
        }
    }

    /// The filters that depend on the node alone.
    fn filter_by_node(&self, info: &NodeInfo) -> Result<(), Rejection> {
        let rules = &self.class.requirements.rules;
        let tolerated = |taints: &[Taint]| {
            first_untolerated(taints, rules.tolerations(), TaintEffect::repels).is_none()
        };
        let view = &info.view;
        if view.unschedulable && !tolerated(&[Taint::new(UNSCHEDULABLE, TaintEffect::NoSchedule)]) {
            return Err(Rejection::unresolvable(Reason::Unschedulable));
        }
        if !tolerated(&view.taints) {
            return Err(Rejection::unresolvable(Reason::Taint));
        }
        if !rules.selects(view) {
            return Err(Rejection::unresolvable(Reason::NodeAffinity));
        }
        Ok(())
    }

    fn filter_by_ports(&self, usage: &Usage) -> Result<(), Rejection> {
        let taken = |port: &HostPort| usage.ports.iter().any(|other| other.conflicts(port));
        if self.class.requirements.ports.iter().any(taken) {
            return Err(Rejection::resolvable_by_preemption(Reason::Ports));
        }
        Ok(())
    }

    fn filter_by_resources(&self, info: &NodeInfo, usage: &Usage) -> Result<(), Rejection> {
        let wanted = &self.class.requirements.requests;
        let (all, taken) = (&info.allocatable, &usage.requested);
        let too_many = usage.pods + 1 > all.pods;
        let named = [
            ("cpu", wanted.cpu, all.cpu, taken.cpu),
            ("memory", wanted.memory, all.memory, taken.memory),
            (
                "ephemeral-storage",
                wanted.storage,
                all.storage,
                taken.storage,
            ),
        ];
        let lacks = |wanted: i64, all: i64, taken: i64| wanted > 0 && wanted > all - taken;
        let enough = !named.iter().any(|(_, w, a, t)| lacks(*w, *a, *t))
            && wanted
                .others()
                .all(|(n, w)| !lacks(w, all.other(n), taken.other(n)));
        if enough && !too_many {
            return Ok(());
        }
        let named = named.into_iter().filter(|(_, w, a, t)| lacks(*w, *a, *t));
        let mut lacking: Vec<Arc<str>> = named.map(|(name, ..)| name.into()).collect();
        let others = wanted.others();
        let others = others.filter(|(n, w)| lacks(*w, all.other(n), taken.other(n)));
        lacking.extend(others.map(|(name, _)| name.clone()));
        Err(Rejection::lacking(
            lacking,
            too_many,
            could_ever_fit(wanted, all),
        ))
    }
}

/// Whether an empty node would have enough.
fn could_ever_fit(wanted: &Resources, all: &Resources) -> bool {
    let others = || {
        wanted
            .others()
            .all(|(name, amount)| amount <= all.other(name))
    };
    wanted.cpu <= all.cpu
        && wanted.memory <= all.memory
        && wanted.storage <= all.storage
        && others()
}
