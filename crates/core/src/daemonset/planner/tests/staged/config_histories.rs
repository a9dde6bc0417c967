//! Pinned config (R10) in random histories: ConfigMaps change, templates change and go back, releases fail and are undone,
//! controllers are killed, and each request is checked when it is carried out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kennel_test_support::with_seeds;
use serde_json::Value;

use super::super::super::super::HASH_LABEL;
use super::super::super::super::event::{Action, Event, Write};
use super::super::super::super::history::Revision;
use super::super::super::super::pod::Blueprint;
use super::super::super::super::reference_model::fake_cluster::KINDS;
use super::super::super::super::view::Before;
use super::cluster::Cluster;
use super::config::{config_map, in_use, with_config};
use crate::rollout::config::{config_hash, copy_name, named, references, with_hash};
use crate::rollout::state::{Phase, Verdict};

const POLICY: [(&str, &str); 5] = [
    ("pin-config", "true"),
    ("stages", "1, 100%"),
    ("on-failure", "rollback"),
    ("healthy-deadline", "20s"),
    ("progress-deadline", "2m"),
];
const NODES: u8 = 4;
/// Templates that select every node.
const TEMPLATES: u32 = 3;

struct History {
    seed: u64,
    rng: fastrand::Rng,
    cluster: Cluster,
    /// Requests that are not carried out yet.
    open: Vec<Action>,
    /// The content of copies, by their owner's uid and name.
    contents: BTreeMap<(Arc<str>, Arc<str>), Arc<str>>,
    /// The hashes of revisions that the controller has deleted. Until a watch shows it, the controller may still make pods
    /// of them, and makes them again then (R8.3).
    deleted: BTreeSet<String>,
    log: VecDeque<String>,
    /// What has happened, to know that the histories are worth something.
    reached: BTreeSet<&'static str>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut cluster = Cluster::new(0, &POLICY);
        for number in 0..NODES {
            cluster.fake.add_node(&format!("node-{number}"));
        }
        cluster.fake.put_config_map(config_map("agent", "a"));
        let uid = cluster.uid.clone();
        cluster
            .fake
            .edit_set(&uid, |set| set.template = with_config(0));
        cluster.run();
        cluster.advance(3);
        assert_eq!(in_use(&cluster), ["a"; NODES as usize]);
        Self {
            seed,
            rng: fastrand::Rng::with_seed(seed),
            cluster,
            open: Vec::new(),
            contents: BTreeMap::new(),
            deleted: BTreeSet::new(),
            log: VecDeque::new(),
            reached: BTreeSet::new(),
        }
    }

    fn log(&mut self, text: String) {
        self.log.push_back(text);
        if self.log.len() > 80 {
            self.log.pop_front();
        }
    }

    #[track_caller]
    fn require(&self, holds: bool, rule: &str) {
        assert!(holds, "seed {}: {rule}, after {:#?}", self.seed, self.log);
    }

    fn revision(&self, hash: &str) -> Option<&Revision> {
        let mut all = self.cluster.fake.revisions.values();
        all.find(|revision| revision.hash() == hash)
    }

    /// The names of a revision's copies by the ConfigMaps that its template names.
    fn copies_of(revision: &Revision) -> BTreeMap<String, String> {
        let template = revision.template().unwrap();
        let Some(config) = named(&template) else {
            return BTreeMap::new();
        };
        let names = references(&template).config_maps.into_keys();
        names
            .map(|name| {
                let copy = copy_name(&name, config, revision.hash());
                (name, copy)
            })
            .collect()
    }

    /// A pod of a pinned revision names its copies and no other ConfigMaps, and they have the content that the revision
    /// was made of.
    fn check_creation(&mut self, blueprint: &Blueprint) {
        let body = blueprint.pod("node-0", None, Before::None);
        let body: Value = serde_json::from_str(&body).unwrap();
        let hash = body["metadata"]["labels"][HASH_LABEL].as_str().unwrap();
        if self.deleted.contains(hash) {
            return;
        }
        let Some(revision) = self.revision(hash).cloned() else {
            return self.require(false, "a pod of a revision that does not exist");
        };
        let template = revision.template().unwrap();
        let found: BTreeSet<String> = references(&body).config_maps.into_keys().collect();
        let Some(config) = named(&template) else {
            let live: BTreeSet<String> = references(&template).config_maps.into_keys().collect();
            return self.require(found == live, "a pod without pinned config names copies");
        };
        let copies = Self::copies_of(&revision);
        let expected: BTreeSet<String> = copies.values().cloned().collect();
        self.require(
            found == expected,
            "a pod names what is not its revision's copy",
        );
        let content = |copy: &String| {
            let map = self.cluster.fake.config_maps.get(copy.as_str())?;
            let own = map.owner.as_ref() == Some(&revision.uid);
            own.then(|| map.hash.to_string())
        };
        let contents: Vec<(&String, Option<String>)> = copies
            .iter()
            .map(|(name, copy)| (name, content(copy)))
            .collect();
        let contents = contents
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_deref()));
        let right = config_hash(contents) == config;
        self.require(right, "a pod is created without its revision's config");
        self.reached.insert("a pod with copies");
    }

    /// What a pod uses is not removed.
    fn check_deletion(&mut self, uid: &str) {
        let Some(revision) = self.cluster.fake.revisions.get(uid) else {
            return;
        };
        let hash = revision.hash().to_owned();
        let mut pods = self.cluster.fake.pods.values();
        let used = pods.any(|pod| pod.labels[HASH_LABEL] == *revision.hash() && !pod.terminating);
        let pinned = !Self::copies_of(revision).is_empty();
        self.require(
            !(used && pinned),
            "a revision is deleted whose pods use its copies",
        );
        self.deleted.insert(hash);
    }

    /// Copies have an owner whose they are, and never change.
    fn check_copies(&mut self) {
        let maps: Vec<_> = self.cluster.fake.config_maps.values().cloned().collect();
        for map in maps {
            let Some(owner) = map.owner else {
                continue;
            };
            if let Some(revision) = self.cluster.fake.revisions.get(&owner) {
                let copies = Self::copies_of(revision);
                let own = copies.values().any(|copy| **copy == *map.name);
                self.require(own, "a revision owns a copy that its pods do not name");
            }
            let known = self.contents.insert((owner, map.name), map.hash.clone());
            let same = known.is_none_or(|known| known == map.hash);
            self.require(same, "the content of a copy has changed");
        }
    }

    fn check(&mut self, action: &Action) {
        let Action::Write { write, .. } = action else {
            return;
        };
        match write {
            Write::CreatePod { blueprint, .. } => {
                self.log(format!("create {}", blueprint.hash()));
                self.check_creation(blueprint);
            }
            Write::DeleteRevision(revision) => {
                self.log(format!("{write:?}"));
                self.check_deletion(&revision.uid.clone());
            }
            Write::WriteStatus => {}
            other => self.log(format!("{other:?}")),
        }
    }

    /// Takes new requests. Revisions are deleted at once: a person cannot go back to one that is as good as gone.
    fn take_actions(&mut self) {
        let mut new = VecDeque::from(self.cluster.planner.take_actions());
        while let Some(action) = new.pop_front() {
            let write = match &action {
                Action::Write { write, .. } => Some(write),
                _ => None,
            };
            if !matches!(write, Some(Write::DeleteRevision(_))) {
                self.open.push(action);
                continue;
            }
            self.check(&action);
            self.cluster.perform(action);
            new.extend(self.cluster.planner.take_actions());
        }
    }

    fn perform_some(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let action = self.open.swap_remove(self.rng.usize(..self.open.len()));
        self.check(&action);
        self.cluster.perform(action);
        self.check_copies();
    }

    /// Some requests of the controller are carried out after its death.
    fn kill(&mut self) {
        self.log("kill".to_owned());
        for action in std::mem::take(&mut self.open) {
            if let Action::Write {
                daemon_set, write, ..
            } = &action
                && self.rng.bool()
            {
                self.check(&action);
                drop(self.cluster.fake.execute(daemon_set, write, None));
            }
        }
        self.cluster.kill();
    }

    fn pass_time(&mut self, millis: u64) {
        let passed = Duration::from_millis(millis);
        self.cluster.steady += passed;
        self.cluster.fake.now = self.cluster.fake.now + passed;
        self.cluster.apply(Event::Tick);
    }

    fn step(&mut self) {
        match self.rng.u8(..100) {
            0..30 => drop(self.cluster.deliver(KINDS[self.rng.usize(..KINDS.len())])),
            30..40 => drop(self.cluster.deliver_config()),
            40..70 => self.perform_some(),
            70..90 => drop(self.cluster.kubelets()),
            _ => {
                let millis = self.rng.u64(..2_500);
                self.pass_time(millis);
            }
        }
        self.take_actions();
    }

    fn apply(&mut self, template: Value) {
        let uid = self.cluster.uid.clone();
        let edit = |set: &mut super::super::super::super::view::DaemonSetView| {
            set.template = Arc::new(template);
        };
        self.cluster.fake.edit_set(&uid, edit);
    }

    fn change_config(&mut self) {
        let name = ["agent", "agent", "extra"][self.rng.usize(..3)];
        let content = ["a", "b", "c", "d"][self.rng.usize(..4)];
        self.log(format!("config {name} {content}"));
        if name == "extra" && self.rng.bool() {
            return self.cluster.fake.remove_config_map(name);
        }
        self.cluster.fake.put_config_map(config_map(name, content));
    }

    /// What `kubectl rollout undo` does.
    fn undo(&mut self) {
        let all: Vec<Value> = self
            .cluster
            .fake
            .revisions
            .values()
            .filter_map(Revision::template)
            .collect();
        if let Some(template) = self.rng.choice(&all).cloned() {
            self.log(format!("undo to {:?}", named(&template)));
            self.apply(template);
            self.reached.insert("an undo");
        }
    }

    fn command(&mut self) {
        let target = self.cluster.fake.revisions.values();
        let target = target.max_by_key(|revision| revision.revision).unwrap();
        let (hash, state) = (target.hash().to_owned(), target.record.state.clone());
        let attempt = state.map_or(1, |state| state.attempt);
        match self.rng.u8(..6) {
            0 => self
                .cluster
                .annotate(&[("promote", &format!("{hash}/full"))]),
            1 => self.cluster.annotate(&[("abort", &hash)]),
            2 => {
                let value = format!("{hash}/{attempt}");
                self.cluster.annotate(&[("retry", &value)]);
            }
            3 => self.cluster.annotate(&[("pause", "night")]),
            4 => self.cluster.annotate(&[("freeze", "storm")]),
            _ => self.cluster.unannotate(&["pause", "freeze"]),
        }
    }

    fn disturb(&mut self) {
        match self.rng.u8(..100) {
            0..30 => self.change_config(),
            30..42 => {
                let number = self.rng.u32(..TEMPLATES);
                self.log(format!("template {number}"));
                self.apply((*with_config(number)).clone());
            }
            42..54 => self.undo(),
            54..66 => {
                let name = format!("node-{}", self.rng.u8(..NODES));
                if !self.cluster.sick.remove(&name) {
                    self.cluster.sick.insert(name);
                }
            }
            66..78 => self.command(),
            78..84 => {
                let limit = self.rng.i64(..3);
                let uid = self.cluster.uid.clone();
                let edit = |set: &mut super::super::super::super::view::DaemonSetView| {
                    set.revision_history_limit = limit;
                };
                self.cluster.fake.edit_set(&uid, edit);
            }
            _ => self.kill(),
        }
        self.take_actions();
    }

    /// Carries out what is left, as it comes.
    fn settle(&mut self, seconds: u64) {
        for _ in 0..seconds {
            for _ in 0..200 {
                let mut busy = self.cluster.kubelets();
                busy |= self.cluster.deliver_config();
                for kind in KINDS {
                    busy |= self.cluster.deliver(kind);
                }
                self.take_actions();
                busy |= !self.open.is_empty();
                while !self.open.is_empty() {
                    self.perform_some();
                }
                if !busy {
                    break;
                }
            }
            self.pass_time(1_000);
            self.take_actions();
        }
    }

    /// Everything is well again: a new template gets the config that there is, an undo what there was, and no copy is left
    /// that nobody owns.
    fn check_end(&mut self) {
        self.cluster.sick.clear();
        self.cluster.unannotate(&["pause", "freeze"]);
        let uid = self.cluster.uid.clone();
        self.cluster
            .fake
            .edit_set(&uid, |set| set.revision_history_limit = 2);
        self.cluster
            .fake
            .put_config_map(config_map("agent", "last"));
        self.apply((*with_config(5)).clone());
        self.settle(150);
        let all_use = |this: &Self, content: &str| {
            let used = in_use(&this.cluster);
            let right = used == vec![content.to_owned(); usize::from(NODES)];
            this.require(right, &format!("{used:?} instead of {content}"));
        };
        all_use(self, "last");
        let before = with_hash(&self.newest().template().unwrap(), None);
        let config = named(&self.newest().template().unwrap()).map(str::to_owned);
        // Config that is bad goes back by itself.
        self.cluster.sick = (0..NODES).map(|number| format!("node-{number}")).collect();
        self.cluster.fake.put_config_map(config_map("agent", "bad"));
        self.settle(60);
        self.cluster.sick.clear();
        self.settle(60);
        all_use(self, "last");
        let held = self.newest().record;
        let phase = held.state.map(|state| state.phase);
        let failed = (held.verdict, phase) == (Some(Verdict::Failed), Some(Phase::Held));
        self.require(failed, "bad config is not held");
        self.cluster
            .fake
            .put_config_map(config_map("agent", "good"));
        self.settle(60);
        all_use(self, "good");
        self.apply(with_hash(&before, config.as_deref()));
        self.settle(60);
        all_use(self, "last");
        let maps = self.cluster.fake.config_maps.values();
        let mut owners = maps.filter_map(|map| map.owner.as_ref());
        let owned = owners.all(|owner| self.cluster.fake.revisions.contains_key(owner));
        self.require(owned, "a copy is left without its revision");
    }

    fn newest(&self) -> Revision {
        let all = self.cluster.fake.revisions.values();
        all.max_by_key(|revision| revision.revision)
            .unwrap()
            .clone()
    }
}

fn run(seed: u64) -> BTreeSet<&'static str> {
    let mut history = History::new(seed);
    for step in 0..900 {
        if step % 15 == 0 {
            history.disturb();
        }
        history.step();
        for revision in history.cluster.fake.revisions.values() {
            if revision.record.verdict == Some(Verdict::Failed) {
                history.reached.insert("a failure");
            }
        }
    }
    history.check_end();
    history.reached
}

#[test]
fn r10_in_random_histories_pods_use_their_revisions_copies_and_none_is_lost_or_left() {
    with_seeds(0..20, |seed| drop(run(seed)));
}

#[test]
fn random_histories_of_config_undo_and_fail() {
    let reached: BTreeSet<&str> = (0..4).flat_map(run).collect();
    let expected: BTreeSet<&str> = ["a failure", "a pod with copies", "an undo"].into();
    assert_eq!(reached, expected);
}
