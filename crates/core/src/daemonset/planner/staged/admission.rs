//! Which nodes a rollout has, in which order, and which of them the present stage admits (R3.1).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use kennel_types::Timestamp;

use super::super::nodes::Nodes;
use super::super::sets::Set;
use super::slot::{Selected, StagedCounts};
use super::{Context, SignedTick, Staged, StagedSlot};
use crate::ids::NodeId;
use crate::rollout::machine::{NextStage, Totals};
use crate::rollout::order::{Place, Places};
use crate::rollout::stage::Size;
use crate::rollout::state::{AllNodes, Cut};

/// The index of a `spread` value; without `spread`, all nodes have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct ValueId(NonZeroU32);

/// The values of the `spread` label.
#[derive(Debug, Default)]
pub(super) struct Values {
    names: Vec<Arc<str>>,
    ids: BTreeMap<Arc<str>, ValueId>,
}

impl Values {
    pub(super) fn id(&mut self, value: &str) -> ValueId {
        if let Some(id) = self.ids.get(value) {
            return *id;
        }
        let value: Arc<str> = value.into();
        self.names.push(value.clone());
        let id = u32::try_from(self.names.len())
            .ok()
            .and_then(NonZeroU32::new);
        let id = ValueId(id.expect("there are fewer than four billion values"));
        self.ids.insert(value, id);
        id
    }

    pub(super) fn name(&self, id: ValueId) -> &Arc<str> {
        &self.names[id.0.get() as usize - 1]
    }
}

/// The cut, as places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Cutoff {
    #[default]
    Nothing,
    All,
    /// Whatever their value is.
    UpTo(Place),
    ByValue(BTreeMap<ValueId, Place>),
}

impl Cutoff {
    /// `order` is the first part of the node's place. The whole place reads the node's name, which is seldom needed and seldom
    /// in a cache.
    pub(super) fn admits(
        &self,
        value: Option<ValueId>,
        order: impl FnOnce() -> u32,
        place: impl FnOnce() -> Place,
    ) -> bool {
        let up_to = |last: &Place| match order().cmp(&last.order()) {
            Ordering::Less => true,
            Ordering::Equal => place() <= *last,
            Ordering::Greater => false,
        };
        match (self, value) {
            (Self::Nothing, _) | (_, None) => false,
            (Self::All, Some(_)) => true,
            (Self::UpTo(last), Some(_)) => up_to(last),
            (Self::ByValue(cut), Some(value)) => cut.get(&value).is_some_and(up_to),
        }
    }
}

impl Staged {
    pub(super) fn place(set: &Set, node: NodeId, nodes: &Nodes) -> Place {
        Place::new(set.seed, nodes.seed(node), nodes.name(node))
    }

    fn spread_value<'a>(&self, node: NodeId, nodes: &'a Nodes) -> &'a str {
        let key = self.policy.spread.as_ref();
        let view = nodes.view(node);
        let value = key.zip(view).and_then(|(key, view)| view.labels.get(key));
        value.map_or("", String::as_str)
    }

    /// Whether the present stage takes nodes by label, and this is one.
    pub(super) fn is_selected(&self, node: NodeId, nodes: &Nodes) -> bool {
        let Some(Size::Nodes(selector)) = self.stage_size() else {
            return false;
        };
        let view = nodes.view(node);
        view.is_some_and(|view| selector.matches(|key| view.labels.get(key).map(String::as_str)))
    }

    /// Whether a node that the present stage does not reach stays admitted by the pod of the target that it has (R3.1,
    /// R3.7). Where another controller creates pods there is no way back (R11).
    pub(super) fn keeps_target(&self, node: NodeId, created: Timestamp, nodes: &Nodes) -> bool {
        let view = nodes.view(node);
        let label = |key: &str| view.and_then(|view| view.labels.get(key).map(String::as_str));
        let state = self.state();
        self.assist || state.is_none_or(|s| self.policy.keeps_target(s, created, label))
    }

    /// Enters a node into the rollout's nodes, or takes it out, after its eligibility or labels have changed.
    pub(in super::super) fn place_node(&mut self, set: &Set, node: NodeId, nodes: &Nodes) {
        let place = Self::place(set, node, nodes);
        let stable_fit = self
            .stable
            .as_ref()
            .and_then(|stable| nodes.fit(node, &stable.rules));
        let selects = |rules| nodes.is_selected(node, rules);
        let selected = Selected {
            by_target: selects(&set.rules),
            by_stable: self.stable.as_ref().is_some_and(|s| selects(&s.rules)),
        };
        let slot = self.slot(node);
        (slot.stable_fit, slot.selected) = (stable_fit, selected);
        let mine = *slot;
        let value = (selected.by_target || selected.by_stable).then(|| {
            let value = self.spread_value(node, nodes).to_owned();
            self.values.id(&value)
        });
        if value == mine.value {
            return;
        }
        self.outage.set(None);
        if let Some(old) = mine.value {
            let name = self.values.name(old).clone();
            self.places.remove(&name, place);
            self.before_cut -= i64::from(self.cut.admits(Some(old), || place.order(), || place));
        }
        if let Some(new) = value {
            let name = self.values.name(new).clone();
            self.places.insert(&name, place, node);
            self.before_cut += i64::from(self.cut.admits(Some(new), || place.order(), || place));
        }
        self.totals.nodes = self.places.total();
        self.slot(node).value = value;
    }

    /// Takes all nodes out, before they are entered again.
    pub(in super::super) fn reset(&mut self) {
        self.places = Places::default();
        self.values = Values::default();
        self.cut = Cutoff::Nothing;
        self.before_cut = 0;
        self.totals = Totals::default();
        self.budget_holders.clear();
        self.outage.set(None);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            (slot.value, slot.counts) = (None, StagedCounts::default());
        }
    }

    pub(in super::super) fn slot(&mut self, node: NodeId) -> &mut StagedSlot {
        let index = node.index();
        if self.slots.get(index).is_none() {
            self.slots.grow_to(index + 1);
        }
        &mut self.slots[index]
    }

    /// Translates the state's cut to places and counts the nodes up to it.
    pub(in super::super) fn load_cut(&mut self, seed: u32) {
        let cut = self
            .state()
            .map(|state| state.cut.clone())
            .unwrap_or_default();
        self.cut = match cut {
            Cut::Nothing => Cutoff::Nothing,
            Cut::All(AllNodes) => Cutoff::All,
            // Written without `spread`. With one, it holds for every value, also for those that nodes get later.
            Cut::Node(name) => Cutoff::UpTo(Place::of(seed, &name)),
            Cut::ByValue(cut) => {
                let last = |(value, name): (&String, &String)| {
                    (self.values.id(value), Place::of(seed, name))
                };
                Cutoff::ByValue(cut.iter().map(last).collect())
            }
        };
        let up_to = self.places.iter().filter(|(value, place, _)| {
            let id = self.values.ids.get(*value).copied();
            self.cut.admits(id, || place.order(), || *place)
        });
        self.before_cut = i64::try_from(up_to.count()).unwrap_or(i64::MAX);
    }

    /// The cut that admits so many nodes, as the state has it.
    pub(super) fn cut_of(&self, size: &Size, nodes: &Nodes) -> Cut {
        if matches!(
            size,
            Size::Count(crate::int_or_percent::IntOrPercent::Percent(100))
        ) {
            return Cut::All(AllNodes);
        }
        let Some(size) = size.of(self.places.total()) else {
            // A stage by label adds to what is admitted by place already.
            return self
                .state()
                .map(|state| state.cut.clone())
                .unwrap_or_default();
        };
        let last = self.places.cut(size);
        let name = |node: NodeId| nodes.name(node).to_string();
        if self.policy.spread.is_some() {
            let by_value = last
                .into_iter()
                .map(|(value, (_, node))| (value.to_string(), name(node)));
            return Cut::ByValue(by_value.collect());
        }
        let last = last.into_values().next();
        last.map_or(Cut::Nothing, |(_, node)| Cut::Node(name(node)))
    }

    /// The first stage after `stage` that adds a node (R3.8).
    pub(super) fn next_stage(&self, stage: usize, nodes: &Nodes) -> Option<NextStage> {
        let total = self.places.total();
        self.find_stage(stage, nodes, |size| match size.of(total) {
            Some(size) => size > self.totals.admitted,
            None => self.adds_selected(size, nodes),
        })
    }

    /// The stage that a retry begins with, whatever nodes have the target already.
    pub(super) fn first_stage(&self, nodes: &Nodes) -> Option<NextStage> {
        let total = self.places.total();
        self.find_stage(0, nodes, |size| size.of(total).is_none_or(|size| size > 0))
    }

    fn find_stage(
        &self,
        after: usize,
        nodes: &Nodes,
        adds: impl Fn(&Size) -> bool,
    ) -> Option<NextStage> {
        let mut stages = self.policy.stages.iter().enumerate().skip(after);
        let (index, found) = stages.find(|(_, stage)| adds(&stage.size))?;
        Some(NextStage {
            stage: index + 1,
            cut: self.cut_of(&found.size, nodes),
        })
    }

    /// Whether a stage by label has a node that is not admitted yet, or none at all.
    fn adds_selected(&self, size: &Size, nodes: &Nodes) -> bool {
        let Size::Nodes(selector) = size else {
            return false;
        };
        let mut selected = self.places.iter().filter(|(_, _, node)| {
            let view = nodes.view(*node);
            view.is_some_and(|view| {
                selector.matches(|key| view.labels.get(key).map(String::as_str))
            })
        });
        let admitted = |node: NodeId| {
            let slot = self.slots.get(node.index());
            slot.is_some_and(|slot| slot.counts.admitted)
        };
        match selected.next() {
            None => true,
            Some((_, _, first)) => !admitted(first) || selected.any(|(_, _, node)| !admitted(node)),
        }
    }

    /// Whether a node that the present stage takes by label is healthy (R3.8).
    pub(super) fn has_healthy_selected(&self, nodes: &Nodes) -> bool {
        let mut all = self.places.iter();
        all.any(|(_, _, node)| {
            let slot = self.slots.get(node.index());
            slot.is_some_and(|slot| slot.counts.healthy) && self.is_selected(node, nodes)
        })
    }

    /// The cut that the present stage needs now, if fewer nodes than its size lie up to the one it has (R3.1).
    pub(super) fn moved_cut(&self, nodes: &Nodes) -> Option<Cut> {
        let size = self.stage_size()?;
        let wanted = size.of(self.places.total())?;
        if self.before_cut >= wanted || self.cut == Cutoff::All {
            return None;
        }
        let cut = self.cut_of(size, nodes);
        (Some(&cut) != self.state().map(|state| &state.cut)).then_some(cut)
    }

    /// Whether at least as many nodes without the target as with it went down since shortly before a node did (R4.2).
    pub(super) fn is_outage(&self, since: SignedTick, context: Context<'_>) -> bool {
        let from = since.before(self.policy.blame_window);
        let key = (from, context.nodes.down_version());
        if let Some((at, outage)) = self.outage.get()
            && at == key
        {
            return outage;
        }
        let (mut with, mut without) = (0_usize, 0_usize);
        for node in context.nodes.down_from(from) {
            let slot = self.slots.get(node.index());
            if slot.is_none_or(|slot| slot.value.is_none()) {
                continue;
            }
            if slot.is_some_and(|slot| slot.judged.is_some()) {
                with += 1;
            } else {
                without += 1;
            }
        }
        let outage = without >= with;
        self.outage.set(Some((key, outage)));
        outage
    }
}
