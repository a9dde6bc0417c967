//! May this pod go to that node now? The filters, in upstream's order; the first that refuses decides.

use std::sync::Arc;

use super::demand::Class;
use super::node::{Machine, Node, Usage};
use super::ports::HostPort;
use super::refusal::{Reason, Refusal};
use super::relations::{Clash, Company};
use super::resources::Resources;
use crate::taint::{NO_EXECUTE, NO_SCHEDULE, Taint, first_untolerated};

/// What a pod must tolerate to be placed on a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The pod that is to be placed.
pub(super) struct Candidate<'a> {
    pub(super) class: &'a Arc<Class>,
    /// Which other pods matter to it.
    pub(super) company: Option<Company<'a>>,
}

impl Candidate<'_> {
    /// Judges a node of which so much is taken. `gone` are classes of pods there that count as gone.
    pub(super) fn judge(
        &self,
        node: &Node,
        usage: &Usage,
        gone: &[&Arc<Class>],
    ) -> Result<(), Refusal> {
        let Some(machine) = &node.machine else {
            return Err(Refusal::for_good(Reason::NodeAffinity));
        };
        self.selected(machine)?;
        self.ports(usage)?;
        self.room(machine, usage)?;
        let Some(company) = &self.company else {
            return Ok(());
        };
        match company.clash(node, gone) {
            None => Ok(()),
            Some(Clash::Near) => Err(Refusal::for_good(Reason::PodAffinity)),
            Some(Clash::Apart) => Err(Refusal::for_now(Reason::PodAntiAffinity)),
            Some(Clash::Guarded) => Err(Refusal::for_now(Reason::ExistingAntiAffinity)),
        }
    }

    /// What the node is, whoever else is there.
    fn selected(&self, machine: &Machine) -> Result<(), Refusal> {
        let rules = &self.class.demand.rules;
        let tolerated = |taints: &[Taint]| {
            first_untolerated(taints, rules.tolerations(), &[NO_SCHEDULE, NO_EXECUTE]).is_none()
        };
        let view = &machine.view;
        if view.unschedulable && !tolerated(&[cordon()]) {
            return Err(Refusal::for_good(Reason::Unschedulable));
        }
        if !tolerated(&view.taints) {
            return Err(Refusal::for_good(Reason::Taint));
        }
        if !rules.selects(view) {
            return Err(Refusal::for_good(Reason::NodeAffinity));
        }
        Ok(())
    }

    fn ports(&self, usage: &Usage) -> Result<(), Refusal> {
        let taken = |port: &HostPort| usage.ports.iter().any(|other| other.conflicts(port));
        if self.class.demand.ports.iter().any(taken) {
            return Err(Refusal::for_now(Reason::Ports));
        }
        Ok(())
    }

    fn room(&self, machine: &Machine, usage: &Usage) -> Result<(), Refusal> {
        let wanted = &self.class.demand.requests;
        let (all, taken) = (&machine.allocatable, &usage.requested);
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
        Err(Refusal::lacking(
            lacking,
            too_many,
            could_ever_fit(wanted, all),
        ))
    }
}

/// An empty node would have enough.
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

fn cordon() -> Taint {
    Taint {
        key: UNSCHEDULABLE.to_owned(),
        value: String::new(),
        effect: NO_SCHEDULE.to_owned(),
    }
}
