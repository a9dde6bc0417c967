//! The rules of staged rollouts (R1 to R6) as plain functions of whole objects, written a second time straight from the
//! spec. Nothing here may call `planner::staged` or `rollout::{machine, order}`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::super::super::history::{Revision, data};
use super::super::super::view::{DaemonSetView, NodeView, PodView, Readiness};
use super::super::super::{GENERATION_LABEL, HASH_LABEL};
use super::super::rules::{eligibility, rollout_order};
use crate::int_or_percent::IntOrPercent;
use crate::rollout::command::Commands;
use crate::rollout::policy::{DownNodes, Policy, Setting};
use crate::rollout::stage::Size;
use crate::rollout::state::{AllNodes, Cut, Phase, Record, State, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing of safe rollouts applies.
    Plain,
    /// No state of this rollout is written yet.
    Unstarted,
    /// R5.6: the verdict is stable, or only `pause` or `freeze` applies.
    Direct,
    Staged,
    /// R5.4.
    Back,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driven {
    Target,
    Stable,
    /// Its pods stay, and none are created.
    Nowhere,
}

/// A pod of the DaemonSet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Daemon<'a> {
    pub(super) view: &'a PodView,
    pub(super) available: bool,
    /// Being deleted, or to be deleted by a request that may still show.
    pub(super) leaving: bool,
}

/// Everything that the rules read, and what they derive of the rollout as a whole.
pub(in super::super) struct Inputs<'a> {
    pub(super) set: &'a DaemonSetView,
    pub(super) nodes: &'a BTreeMap<Arc<str>, NodeView>,
    pub(super) pods: Vec<Daemon<'a>>,
    /// The revisions that the DaemonSet has claimed.
    pub(super) revisions: Vec<&'a Revision>,
    pub(super) setting: Setting,
    pub(super) policy: Policy,
    pub(super) commands: Commands,
    pub(super) target: &'a Revision,
    pub(super) stable: Option<&'a Revision>,
    stable_template: Option<Value>,
    pub(super) record: Record,
    pub(super) standing: Standing,
    /// The controller may not know all of the revisions, so stable may be another for it.
    pub(super) uncertain: bool,
}

impl<'a> Inputs<'a> {
    /// `None` while the current template has no revision.
    pub(super) fn new(
        set: &'a DaemonSetView,
        namespaces: &BTreeMap<Arc<str>, BTreeMap<String, String>>,
        nodes: &'a BTreeMap<Arc<str>, NodeView>,
        pods: Vec<Daemon<'a>>,
        revisions: Vec<&'a Revision>,
    ) -> Option<Self> {
        let current = data::of_template(&set.template);
        let target = revisions.iter().copied().filter(|r| *r.data == *current);
        let target = target.max_by_key(|r| (r.revision, &r.name))?;
        // R8.2
        let own = |state: &State| *state.owner == *set.uid;
        let record = Record {
            verdict: target.record.verdict,
            state: target.record.state.clone().filter(own),
        };
        // R1.1
        let none = BTreeMap::new();
        let defaults = namespaces.get(&set.namespace).unwrap_or(&none);
        let setting = Setting::parse(&set.annotations, defaults);
        let commands = Commands::parse(&set.annotations);
        let halts = commands.pause.is_some() || commands.freeze.is_some();
        let by_record = match (record.verdict, record.state.is_some()) {
            (Some(Verdict::Stable), _) => Standing::Direct,
            (Some(Verdict::Failed), _) => Standing::Back,
            (Some(Verdict::Progressing), true) => Standing::Staged,
            _ => Standing::Unstarted,
        };
        let held = record.verdict == Some(Verdict::Failed);
        let standing = match &setting {
            Setting::Policy(_) | Setting::Invalid(_) => by_record,
            // R1.4
            Setting::Absent if held => by_record,
            // R6.3
            _ if halts => Standing::Direct,
            _ => Standing::Plain,
        };
        let mut inputs = Self {
            policy: setting.policy().cloned().unwrap_or_default(),
            stable: None,
            stable_template: None,
            set,
            nodes,
            pods,
            revisions,
            setting,
            commands,
            target,
            record,
            standing,
            uncertain: false,
        };
        inputs.stable = inputs.find_stable();
        inputs.stable_template = inputs.stable.and_then(Revision::template);
        // R1.2: a first creation proceeds as upstream's.
        let invalid = matches!(inputs.setting, Setting::Invalid(_));
        if invalid && inputs.standing == Standing::Unstarted && inputs.stable.is_none() {
            inputs.standing = Standing::Direct;
        }
        Some(inputs)
    }

    /// An unreadable policy: what runs is judged by the last one that could be read.
    pub(super) fn with_last_policy(mut self, last: Option<&Policy>) -> Self {
        if let (Setting::Invalid(_), Some(last)) = (&self.setting, last) {
            self.policy = last.clone();
        }
        self
    }

    /// The policy that applies. `pause` and `freeze` alone switch no defaults on (R6.3).
    pub(super) fn applied_policy(&self) -> Policy {
        let mut policy = self.policy.clone();
        if self.only_halts() {
            policy.down_nodes = DownNodes::Count;
        }
        policy
    }

    /// With stable as it was when the history was reconciled.
    pub(super) fn with_stable(mut self, hash: Option<&str>) -> Self {
        self.stable = hash.and_then(|hash| self.by_hash(hash));
        self.stable_template = self.stable.and_then(Revision::template);
        self
    }

    /// R5.6: the target's verdict is stable.
    pub(super) fn has_succeeded(&self) -> bool {
        self.record.verdict == Some(Verdict::Stable)
    }

    pub(super) fn state(&self) -> Option<&State> {
        self.record.state.as_ref()
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.state().map(|state| state.phase)
    }

    pub(super) fn by_hash(&self, hash: &str) -> Option<&'a Revision> {
        self.revisions.iter().copied().find(|r| r.hash() == hash)
    }

    /// R2, *stable*.
    fn find_stable(&self) -> Option<&'a Revision> {
        match (self.standing, self.state()) {
            (Standing::Plain | Standing::Direct, _) => None,
            (Standing::Staged | Standing::Back, Some(state)) => {
                self.by_hash(state.stable.as_deref()?)
            }
            _ => self
                .stable_of_a_start()
                .filter(|found| found.uid != self.target.uid),
        }
    }

    /// The target before this one. Stable may have got its new number (R5.8) before that target got its own.
    fn preceding(&self) -> Option<&'a Revision> {
        let others = self.revisions.iter().copied();
        let others = others.filter(|r| r.uid != self.target.uid);
        let number = |r: &&Revision| (r.revision, r.name.clone());
        let first = others.clone().max_by_key(number)?;
        let rest = others.filter(|r| r.uid != first.uid);
        let second = rest.max_by_key(number);
        let names_first = second.filter(|second| self.named_stable(second) == Some(first.hash()));
        names_first.or(Some(first))
    }

    fn named_stable(&self, revision: &'a Revision) -> Option<&'a str> {
        let state = revision.record.state.as_ref();
        let own = state.filter(|state| *state.owner == *self.set.uid);
        own.and_then(|state| state.stable.as_deref())
    }

    fn has_own_state(&self, revision: &Revision) -> bool {
        let state = revision.record.state.as_ref();
        state.is_some_and(|state| *state.owner == *self.set.uid)
    }

    fn stable_of_a_start(&self) -> Option<&'a Revision> {
        let preceding = self.preceding();
        if let Some(before) = preceding {
            match (before.record.verdict, self.named_stable(before)) {
                (Some(Verdict::Stable), _) => return Some(before),
                (Some(_), Some(hash)) => return self.by_hash(hash),
                // Its first creation was staged.
                (Some(_), None) if self.has_own_state(before) => return None,
                _ => {}
            }
        }
        let carried = |revision: &&Revision| {
            let label = |daemon: &&Daemon<'_>| {
                let label = daemon.view.labels.get(HASH_LABEL);
                label.map(String::as_str) == Some(revision.hash()) && daemon.view.target().is_some()
            };
            self.pods.iter().filter(label).count()
        };
        let others = self.revisions.iter().copied();
        let others = others.filter(|r| r.uid != self.target.uid && carried(r) > 0);
        let most = others.max_by_key(|r| (carried(r), r.revision, &r.name));
        most.or(preceding)
    }

    /// R2: the rollout starts with the revision that most pods carry at that moment. Pods that have come or gone since the
    /// controller has counted them may have made another of it.
    pub(super) fn counts_pods_for_stable(&self) -> bool {
        let has_verdict = |before: &Revision| match before.record.verdict {
            Some(Verdict::Stable) => true,
            Some(_) => self.has_own_state(before),
            None => false,
        };
        self.standing == Standing::Unstarted && !self.preceding().is_some_and(has_verdict)
    }

    /// R5.6: the template has gone back to the revision that the preceding target would go back to.
    pub(super) fn returns_to_stable(&self) -> bool {
        // One that is stable itself goes back to nothing.
        let ended = |revision: &&Revision| revision.record.verdict == Some(Verdict::Stable);
        let preceding = self.preceding().filter(|revision| !ended(revision));
        preceding.and_then(|preceding| self.named_stable(preceding)) == Some(self.target.hash())
    }

    /// R2.2.
    pub(super) fn is_of(&self, pod: &PodView, revision: &Revision) -> bool {
        let label = pod.labels.get(HASH_LABEL).map(String::as_str);
        let known = label.is_some_and(|label| self.by_hash(label).is_some());
        let generation = if revision.uid == self.target.uid {
            self.set.template_generation
        } else {
            revision.template_generation
        };
        let numbered = pod.labels.get(GENERATION_LABEL);
        label == Some(revision.hash())
            || (!known
                && generation.is_some_and(|g| numbered.is_some_and(|text| *text == g.to_string())))
    }

    pub(super) fn is_of_target(&self, pod: &PodView) -> bool {
        self.is_of(pod, self.target)
    }

    pub(super) fn is_of_stable(&self, pod: &PodView) -> bool {
        self.stable.is_some_and(|stable| self.is_of(pod, stable))
    }

    /// (shouldRun, shouldContinueRunning) by the target's template.
    pub(super) fn target_fit(&self, name: &str) -> Option<(bool, bool)> {
        let node = self.nodes.get(name)?;
        Some(eligibility(&self.set.template, node))
    }

    pub(super) fn stable_fit(&self, name: &str) -> Option<(bool, bool)> {
        let node = self.nodes.get(name)?;
        Some(eligibility(self.stable_template.as_ref()?, node))
    }

    /// By the template that a pod with this hash is made from. Where it is uncertain which revision is stable, that may be
    /// another one than [`stable`](Self::stable).
    pub(super) fn fit_by_hash(&self, name: &str, hash: &str) -> Option<(bool, bool)> {
        if hash == self.target.hash() {
            return self.target_fit(name);
        }
        let node = self.nodes.get(name)?;
        let template = self.by_hash(hash)?.template()?;
        Some(eligibility(&template, node))
    }

    /// R2.1: whether a template selects a node, also one that is not ready: the taints of those do not count.
    fn selects(&self, template: Option<&Value>, name: &str) -> bool {
        let passes = ["not-ready", "unreachable"].map(|key| format!("node.kubernetes.io/{key}"));
        let node = self.nodes.get(name).cloned();
        node.zip(template).is_some_and(|(mut node, template)| {
            node.taints.retain(|taint| !passes.contains(&taint.key));
            eligibility(template, &node).0
        })
    }

    pub(super) fn target_selects(&self, name: &str) -> bool {
        self.selects(Some(&self.set.template), name)
    }

    pub(super) fn stable_selects(&self, name: &str) -> bool {
        self.selects(self.stable_template.as_ref(), name)
    }

    /// R4.1: the node is down, and its taints keep away what it is driven to.
    pub(super) fn awaits_ready(&self, name: &str) -> bool {
        let runs = |fit: Option<(bool, bool)>| fit.is_some_and(|(run, _)| run);
        let kept_away = match self.driven(name) {
            Driven::Target => self.target_selects(name) && !runs(self.target_fit(name)),
            Driven::Stable => self.stable_selects(name) && !runs(self.stable_fit(name)),
            Driven::Nowhere => false,
        };
        let down = self.readiness(name) != Readiness::Ready;
        kept_away && down && self.skips_down_nodes() && self.standing == Standing::Staged
    }

    /// R2.1: the rollout's nodes, in the fixed order.
    pub(super) fn rollout_nodes(&self) -> Vec<&'a Arc<str>> {
        let mut names: Vec<&'a Arc<str>> = self
            .nodes
            .keys()
            .filter(|name| self.target_selects(name) || self.stable_selects(name))
            .collect();
        names.sort_by_key(|name| self.place(name));
        names
    }

    pub(super) fn has_node(&self, name: &str) -> bool {
        self.rollout_nodes().iter().any(|node| ***node == *name)
    }

    fn place(&self, name: &str) -> u64 {
        let set = format!("{}/{}", self.set.namespace, self.set.name);
        rollout_order(&set, name)
    }

    fn spread_value(&self, name: &str) -> String {
        let label = self.policy.spread.as_ref();
        let node = self.nodes.get(name);
        let value = label.zip(node).and_then(|(key, node)| node.labels.get(key));
        value.cloned().unwrap_or_default()
    }

    /// How many nodes a stage reaches; `None` if it takes them by label.
    pub(super) fn size(&self, size: &Size) -> Option<usize> {
        let total = self.rollout_nodes().len();
        match size {
            Size::Count(IntOrPercent::Int(count)) => {
                Some(usize::try_from(*count).unwrap().min(total))
            }
            Size::Count(IntOrPercent::Percent(percent)) => {
                let percent = usize::try_from(*percent).unwrap();
                Some((percent * total).div_ceil(100))
            }
            Size::Nodes(_) => None,
        }
    }

    /// R3.1: the cut with which a stage starts now.
    pub(super) fn cut_of(&self, size: &Size) -> Cut {
        if matches!(size, Size::Count(IntOrPercent::Percent(100))) {
            return Cut::All(AllNodes);
        }
        let Some(count) = self.size(size) else {
            return self.state().map_or(Cut::Nothing, |state| state.cut.clone());
        };
        let mut waiting: BTreeMap<String, Vec<&Arc<str>>> = BTreeMap::new();
        for name in self.rollout_nodes().into_iter().rev() {
            let value = self.spread_value(name);
            waiting.entry(value).or_default().push(name);
        }
        // One of each value in turn.
        let mut last: BTreeMap<String, String> = BTreeMap::new();
        let mut taken = 0;
        while taken < count {
            for (value, names) in &mut waiting {
                if taken < count
                    && let Some(name) = names.pop()
                {
                    last.insert(value.clone(), name.to_string());
                    taken += 1;
                }
            }
        }
        if self.policy.spread.is_some() {
            return Cut::ByValue(last);
        }
        let last = last.into_values().next();
        last.map_or(Cut::Nothing, Cut::Node)
    }

    /// Whether a node's place lies up to a cut.
    pub(super) fn is_before(&self, name: &str, cut: &Cut) -> bool {
        let up_to = |last: &String| self.place(name) <= self.place(last);
        match cut {
            Cut::Nothing => false,
            Cut::All(AllNodes) => true,
            Cut::Node(last) => up_to(last),
            Cut::ByValue(last) => last.get(&self.spread_value(name)).is_some_and(up_to),
        }
    }

    pub(super) fn stage_size(&self) -> Option<&Size> {
        let stage = self.state()?.stage;
        let stages = &self.policy.stages;
        if stage == 0 {
            return None;
        }
        stages.get(stage - 1).or(stages.last()).map(|s| &s.size)
    }

    /// R3.7: whether the present stage takes this node by its labels.
    pub(super) fn is_labelled(&self, name: &str) -> bool {
        let Some(Size::Nodes(selector)) = self.stage_size() else {
            return false;
        };
        let node = self.nodes.get(name);
        node.is_some_and(|node| selector.matches(|key| node.labels.get(key).map(String::as_str)))
    }

    /// R3.7: a node that loses the label of the present stage goes back. What an earlier stage took by label stays: such
    /// a node has that stage's label, or had its pod before the present stage began.
    fn goes_back(&self, name: &str) -> bool {
        if !matches!(self.stage_size(), Some(Size::Nodes(_))) {
            return false;
        }
        let state = self.state().unwrap();
        let mut followed = Vec::new();
        for stage in self.policy.stages.iter().take(state.stage - 1) {
            if let Size::Nodes(selector) = &stage.size {
                followed.push(selector);
            }
        }
        if followed.is_empty() {
            return true;
        }
        let labels = self.nodes.get(name).map(|node| &node.labels);
        let label = |key: &str| labels.and_then(|all| all.get(key)).map(String::as_str);
        let is_earlier = followed.iter().any(|selector| selector.matches(label));
        let mut here = self.daemons_on(name);
        let made_before = here.any(|daemon| {
            let stays = !daemon.leaving && self.is_of_target(daemon.view);
            let mut times = state.stages.iter();
            let times = times.find(|times| times.stage == state.stage);
            // A pod's second may have begun before the stage did, and the stage's is the one after it began.
            let began = times.map_or(i64::MAX, |times| times.began.as_secs() - 1);
            stays && daemon.view.created.as_secs() < began
        });
        !is_earlier && !made_before
    }

    pub(super) fn daemons_on<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b Daemon<'a>> {
        let here = move |daemon: &&Daemon<'_>| {
            daemon.view.target().is_some_and(|target| **target == *name)
        };
        self.pods.iter().filter(here)
    }

    /// The node has a pod of the target that stays.
    pub(super) fn has_target(&self, name: &str) -> bool {
        let mut here = self.daemons_on(name);
        here.any(|daemon| !daemon.leaving && self.is_of_target(daemon.view))
    }

    /// R5.5: nodes that are ready and have no available daemon, but one that is not the target's.
    pub(super) fn fail_before_their_turn(&self) -> BTreeSet<String> {
        let mut names = self.rollout_nodes();
        names.retain(|name| {
            let here = || self.daemons_on(name).filter(|daemon| !daemon.leaving);
            let of_others = here().all(|daemon| !self.is_of_target(daemon.view));
            let fails = here().next().is_some() && here().all(|daemon| !daemon.available);
            fails && of_others && self.readiness(name) == Readiness::Ready
        });
        let mut all: BTreeSet<String> = BTreeSet::new();
        all.extend(names.iter().take(100).map(std::string::ToString::to_string));
        all
    }

    /// Admitted by its place or by its labels.
    pub(super) fn is_reached(&self, name: &str) -> bool {
        let cut = self.state().map_or(Cut::Nothing, |state| state.cut.clone());
        self.has_node(name) && (self.is_before(name, &cut) || self.is_labelled(name))
    }

    /// R3.1.
    pub(super) fn is_admitted(&self, name: &str) -> bool {
        match self.standing {
            Standing::Plain | Standing::Direct => true,
            Standing::Unstarted | Standing::Back => false,
            Standing::Staged => {
                self.is_reached(name)
                    || (self.has_node(name) && self.has_target(name) && !self.goes_back(name))
            }
        }
    }

    pub(super) fn admitted(&self) -> Vec<&'a Arc<str>> {
        let mut names = self.rollout_nodes();
        names.retain(|name| self.is_admitted(name));
        names
    }

    /// R2, *admitted*, and R5.7.
    pub(super) fn driven(&self, name: &str) -> Driven {
        if self.is_admitted(name) {
            return Driven::Target;
        }
        let failed = |pod: &PodView| {
            let label = pod.labels.get(HASH_LABEL);
            let revision = label.and_then(|label| self.by_hash(label));
            revision.is_some_and(|r| r.record.verdict == Some(Verdict::Failed))
        };
        let superseded = self.daemons_on(name).any(|daemon| {
            let pod = daemon.view;
            let other = !self.is_of_target(pod) && !self.is_of_stable(pod);
            !daemon.leaving && daemon.available && other && !failed(pod)
        });
        let left = superseded && self.standing != Standing::Back;
        if self.stable.is_none() || left {
            Driven::Nowhere
        } else {
            Driven::Stable
        }
    }

    /// No node changes its revision (R1.2, R5.3, R6.2), beside states that are being written.
    pub(super) fn is_held(&self) -> bool {
        let invalid = matches!(self.setting, Setting::Invalid(_));
        let waits = self.phase() == Some(Phase::Paused) && self.standing == Standing::Staged;
        let paused =
            self.commands.pause.is_some() || self.commands.freeze.is_some() || invalid || waits;
        self.standing != Standing::Back && (paused || self.standing == Standing::Unstarted)
    }

    pub(super) fn skips_down_nodes(&self) -> bool {
        self.policy.down_nodes == DownNodes::Skip
            && !matches!(self.standing, Standing::Plain)
            && !self.only_halts()
    }

    /// R6.3: `pause` and `freeze` without a policy switch no defaults on.
    pub(super) fn only_halts(&self) -> bool {
        let held = self.record.verdict == Some(Verdict::Failed);
        match self.setting {
            Setting::Policy(_) | Setting::Invalid(_) => false,
            Setting::Absent => !held,
            Setting::Off => true,
        }
    }

    pub(super) fn readiness(&self, name: &str) -> Readiness {
        self.nodes.get(name).map_or(Readiness::Ready, |n| n.ready)
    }

    /// R4.1: driven to whatever is theirs when they return.
    pub(super) fn is_unreachable(&self, name: &str) -> bool {
        self.skips_down_nodes() && self.readiness(name) == Readiness::Unknown
    }

    /// R3.1: where the cut moves, because fewer nodes than the stage's size remain before it.
    pub(super) fn moved_cut(&self, state: &State) -> Option<Cut> {
        let size = self.stage_size()?;
        let wanted = self.size(size)?;
        let nodes = self.rollout_nodes();
        let before = nodes.iter().filter(|name| self.is_before(name, &state.cut));
        let cut = self.cut_of(size);
        (before.count() < wanted && cut != state.cut).then_some(cut)
    }

    /// R3.8: the first stage after `stage` that adds a node.
    pub(super) fn next_stage(&self, stage: usize) -> Option<(usize, Cut)> {
        self.stage_beyond(stage, &self.admitted())
    }

    /// R6: stage one, whatever nodes have the target already.
    pub(super) fn first_stage(&self) -> Option<(usize, Cut)> {
        self.stage_beyond(0, &[])
    }

    fn stage_beyond(&self, stage: usize, admitted: &[&Arc<str>]) -> Option<(usize, Cut)> {
        let adds = |size: &Size| match size {
            Size::Count(_) => self.size(size).unwrap() > admitted.len(),
            Size::Nodes(selector) => {
                let mut selected = self.rollout_nodes();
                selected.retain(|name| {
                    let labels = &self.nodes[*name].labels;
                    selector.matches(|key| labels.get(key).map(String::as_str))
                });
                selected.is_empty() || selected.iter().any(|name| !admitted.contains(name))
            }
        };
        let mut stages = self.policy.stages.iter().enumerate().skip(stage);
        let (index, found) = stages.find(|(_, stage)| adds(&stage.size))?;
        Some((index + 1, self.cut_of(&found.size)))
    }
}
