//! The cells of one DaemonSet: all of them, then what has changed since.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kennel_core::natural;
use kennel_core::picture::{self as core, CellState, Nodes, Reason};
use kennel_core::rollout::plan::PlannedStage;
use kennel_inspect::live::{Set, View};
use kennel_inspect::snapshot;
use tokio::time::Instant;

use crate::protocol::{AddedNode, Counts, Delta, Key, Picture};

/// By the stage that takes a node instead of a label.
pub(super) const BY_STAGE: &str = "@stage";

/// Labels by which people look at a fleet first.
const FIRST_LABELS: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
];

/// How often nodes are grouped again: that reads a label of each.
const GROUPS_INTERVAL: Duration = Duration::from_secs(1);

/// The number of the stage that takes each node, by index of the watches; 0 for none.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Stages(Vec<u16>);

impl Stages {
    pub(super) fn of(stages: &[PlannedStage], nodes: &Nodes) -> Self {
        let mut of_nodes = Vec::new();
        for stage in stages {
            // Policies have a few dozen stages at most.
            let number = u16::try_from(stage.stage).unwrap_or(u16::MAX);
            for name in stage.nodes.iter().chain(&stage.down) {
                let Some(index) = nodes.index(name) else {
                    continue;
                };
                of_nodes.resize(nodes.len(), 0);
                if of_nodes[index] == 0 {
                    of_nodes[index] = number;
                }
            }
        }
        Self(of_nodes)
    }

    fn get(&self, index: usize) -> Option<u16> {
        self.0.get(index).copied().filter(|stage| *stage > 0)
    }
}

/// What the page has.
pub(super) struct Sent {
    pub(super) uid: Arc<str>,
    /// The version of the set.
    version: u64,
    /// By index of the page: the index of the watches.
    nodes: Vec<usize>,
    /// Nodes of the watches up to here are in `nodes`, or were gone before they could be.
    seen: usize,
    cells: Vec<u8>,
    group: Vec<u32>,
    /// In the order of their indices.
    groups: BTreeMap<String, u32>,
    reasons: BTreeMap<u32, Reason>,
    /// When the nodes were grouped; `None` if that is due at once.
    groups_at: Option<Instant>,
    /// Something has changed since the nodes were grouped.
    groups_due: bool,
}

/// The numbers, as the page has them.
pub(super) fn counts(counts: core::Counts) -> Counts {
    Counts {
        old: counts.get(CellState::Old),
        updating: counts.get(CellState::Updating),
        new: counts.get(CellState::New),
        failed: counts.get(CellState::Failed),
        down: counts.get(CellState::Down),
        not_eligible: counts.get(CellState::NotEligible),
        waiting: counts.get(CellState::Waiting),
    }
}

/// How nodes are grouped.
pub(super) struct Grouping<'a> {
    pub(super) label: Option<&'a str>,
    pub(super) stages: &'a Stages,
}

impl Grouping<'_> {
    /// The group of a node; empty for a node that is gone.
    fn of<'n>(&self, nodes: &'n Nodes, index: usize) -> Cow<'n, str> {
        let view = nodes.get(index);
        match (self.label, view) {
            (None, _) | (_, None) => "".into(),
            (Some(BY_STAGE), Some(_)) => {
                let stage = self.stages.get(index);
                stage.map_or("".into(), |stage| stage.to_string().into())
            }
            (Some(label), Some(view)) => view.labels.get(label).map_or("", String::as_str).into(),
        }
    }
}

/// Everything.
pub(super) fn picture(view: &View, set: &Set, grouping: &Grouping<'_>) -> (Picture, Sent) {
    let (nodes, picture) = (view.nodes(), set.picture());
    let mut order: Vec<usize> = nodes.iter().map(|(index, _)| index).collect();
    let name = |index: usize| nodes.name(index).map_or("", |name| &**name);
    order.sort_by(|a, b| natural::compare(name(*a), name(*b)));
    let of: Vec<Cow<'_, str>> = order
        .iter()
        .map(|index| grouping.of(nodes, *index))
        .collect();
    let mut names: Vec<&str> = of.iter().map(AsRef::as_ref).collect();
    names.sort_by(|a, b| natural::compare(a, b));
    names.dedup();
    if names.is_empty() {
        names.push("");
    }
    let numbered = names
        .iter()
        .zip(0..)
        .map(|(name, number)| ((*name).to_owned(), number));
    let groups: BTreeMap<String, u32> = numbered.collect();
    let group: Vec<u32> = of
        .iter()
        .map(|name| groups.get(&**name).copied().unwrap_or(0))
        .collect();
    let cells: Vec<u8> = order.iter().map(|index| letter(picture, *index)).collect();
    let reasons: BTreeMap<u32, Reason> = order
        .iter()
        .zip(0..)
        .filter_map(|(index, own)| Some((own, reason(picture, *index)?)))
        .collect();
    let daemon_set = picture.daemon_set();
    let all = Picture {
        key: Key {
            namespace: daemon_set.namespace.to_string(),
            name: daemon_set.name.to_string(),
        },
        nodes: order.iter().map(|index| name(*index).to_owned()).collect(),
        group_label: grouping.label.map(str::to_owned),
        groups: names.iter().map(|name| (*name).to_owned()).collect(),
        group: group.clone(),
        cells: cells.iter().map(|letter| char::from(*letter)).collect(),
        counts: counts(picture.counts()),
        reasons: reasons
            .iter()
            .map(|(own, reason)| (*own, reason.code()))
            .collect(),
        labels: labels(nodes),
        now: snapshot::now(),
    };
    let sent = Sent {
        uid: daemon_set.uid.clone(),
        version: set.version(),
        nodes: order,
        seen: nodes.len(),
        cells,
        group,
        groups,
        reasons,
        groups_at: Some(Instant::now()),
        groups_due: false,
    };
    (all, sent)
}

/// Without a node `-`.
fn letter(picture: &core::Picture, index: usize) -> u8 {
    picture.letters().get(index).copied().unwrap_or(b'-')
}

/// The reason of a state that needs one.
fn reason(picture: &core::Picture, index: usize) -> Option<Reason> {
    let state = picture.state(index)?;
    let needs = matches!(
        state,
        CellState::Failed | CellState::Down | CellState::Updating
    );
    picture.reason(index).filter(|_| needs)
}

fn labels(nodes: &Nodes) -> Vec<String> {
    let mut labels = nodes.group_labels();
    let rank = |label: &String| {
        let first = FIRST_LABELS.iter().position(|first| first == label);
        first.unwrap_or(FIRST_LABELS.len())
    };
    labels.sort_by_key(|label| (rank(label), label.clone()));
    labels
}

impl Sent {
    /// What has changed since; nothing if nothing has.
    pub(super) fn delta(
        &mut self,
        view: &View,
        set: &Set,
        grouping: &Grouping<'_>,
    ) -> Option<Delta> {
        let mut delta = Delta::default();
        self.add_nodes(view, set, grouping, &mut delta);
        if self.version != set.version() {
            self.version = set.version();
            self.change_cells(set, &mut delta);
        }
        self.groups_due = grouping.label.is_some();
        let may = self
            .groups_at
            .is_none_or(|at| at.elapsed() >= GROUPS_INTERVAL);
        if self.groups_due && may {
            (self.groups_at, self.groups_due) = (Some(Instant::now()), false);
            self.change_groups(view, grouping, &mut delta);
        }
        let is_empty = delta == Delta::default();
        delta.counts = counts(set.picture().counts());
        (!is_empty).then_some(delta)
    }

    /// Groups the nodes again with the next delta.
    pub(super) fn regroup(&mut self) {
        self.groups_at = None;
    }

    /// When to group the nodes again, if at all.
    pub(super) fn groups_at(&self) -> Option<Instant> {
        let at = self.groups_at.filter(|_| self.groups_due)?;
        Some(at + GROUPS_INTERVAL)
    }

    fn add_nodes(&mut self, view: &View, set: &Set, grouping: &Grouping<'_>, delta: &mut Delta) {
        let nodes = view.nodes();
        for index in self.seen..nodes.len() {
            let name = nodes.name(index).map(ToString::to_string);
            let own = u32::try_from(self.nodes.len());
            let (Some(name), Ok(own)) = (name, own) else {
                continue;
            };
            let group = self.group(&grouping.of(nodes, index), delta);
            let state = letter(set.picture(), index);
            self.nodes.push(index);
            self.cells.push(state);
            self.group.push(group);
            if let Some(reason) = reason(set.picture(), index) {
                self.reasons.insert(own, reason);
                delta.reasons.push((own, reason.code()));
            }
            delta.add.push(AddedNode {
                name,
                group,
                state: char::from(state),
            });
        }
        self.seen = nodes.len();
    }

    fn change_cells(&mut self, set: &Set, delta: &mut Delta) {
        let picture = set.picture();
        for (own, (index, cell)) in (0..).zip(self.nodes.iter().zip(&mut self.cells)) {
            let now = letter(picture, *index);
            if *cell != now {
                *cell = now;
                delta.cells.push((own, char::from(now)));
            }
            let reason = reason(picture, *index);
            if self.reasons.get(&own) == reason.as_ref() {
                continue;
            }
            let code = if let Some(reason) = reason {
                self.reasons.insert(own, reason);
                reason.code()
            } else {
                self.reasons.remove(&own);
                String::new()
            };
            delta.reasons.push((own, code));
        }
    }

    fn change_groups(&mut self, view: &View, grouping: &Grouping<'_>, delta: &mut Delta) {
        for own in 0..self.nodes.len() {
            let index = self.nodes[own];
            if view.nodes().get(index).is_none() {
                continue;
            }
            let name = grouping.of(view.nodes(), index);
            let group = self.group(&name, delta);
            if self.group[own] != group {
                self.group[own] = group;
                // A page has fewer than four billion nodes.
                delta
                    .group
                    .extend(u32::try_from(own).ok().map(|own| (own, group)));
            }
        }
    }

    /// The index of a group, which is new if there is none of this name.
    fn group(&mut self, name: &str, delta: &mut Delta) -> u32 {
        if let Some(group) = self.groups.get(name) {
            return *group;
        }
        let group = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        self.groups.insert(name.to_owned(), group);
        delta.groups.push(name.to_owned());
        group
    }
}
