//! What cells say, and that a picture kept up to date is the one that a new one would be.

use std::sync::Arc;
use std::time::Duration;

use kennel_test_support::with_seeds;
use kennel_types::{Timestamp, Waiting};

use super::{CellState, Counts, Exclusion, Nodes, Picture, Reason};
use crate::daemonset::view::{Health, Phase as PodPhase, Readiness};
use crate::daemonset::{HASH_LABEL, NodeView, PodView};
use crate::rollout::state::{Cut, Phase, Verdict};
use crate::rollout::tests::fixture::{ALL, Fixture, NOW, state};
use crate::taint::Taint;

/// Everything of a fixture, entered into a new picture.
fn picture(fixture: &Fixture, nodes: &Nodes, now: Timestamp) -> Picture {
    let mut picture = Picture::new(fixture.set.clone());
    picture.set_namespace(Arc::new(fixture.namespace.clone()));
    for revision in &fixture.revisions {
        picture.apply_revision(revision.clone());
    }
    for pod in &fixture.pods {
        picture.apply_pod(pod.clone());
    }
    picture.refresh(nodes, now);
    picture
}

fn nodes(fixture: &Fixture) -> Nodes {
    let mut nodes = Nodes::default();
    for node in &fixture.nodes {
        nodes.apply(node.clone());
    }
    nodes
}

fn check(fixture: &Fixture, node: &str, state: CellState, reason: Reason) {
    let nodes = nodes(fixture);
    let picture = picture(fixture, &nodes, Timestamp::from_secs(NOW));
    let cell = picture.cell(&nodes, nodes.index(node).unwrap()).unwrap();
    assert_eq!((cell.state, cell.reason), (state, reason), "{node}");
}

/// Ten nodes, of which the first three in order have the target.
fn staged() -> Fixture {
    let fixture = Fixture::new(10).annotate("stages", "30%, 100%");
    let order = fixture.order();
    let cut = Cut::Node(order[2].clone());
    fixture.progressing(Phase::Updating, 1, cut).updated(3)
}

fn change(fixture: &mut Fixture, node: &str, change: impl Fn(&mut PodView)) {
    let on = |pod: &&mut PodView| pod.bound_to.as_deref() == Some(node);
    fixture.pods.iter_mut().filter(on).for_each(change);
}

#[test]
fn a_rollout_in_stages_shows_who_has_it_and_who_waits() {
    let fixture = staged();
    let order = fixture.order();
    check(&fixture, &order[0], CellState::New, Reason::Runs);
    check(&fixture, &order[9], CellState::Waiting, Reason::Stage);
    let fixture = fixture.pod(&order[2], "old");
    check(&fixture, &order[2], CellState::Old, Reason::Budget);
    let fixture = fixture.annotate("pause", "lunch");
    check(&fixture, &order[2], CellState::Old, Reason::Paused);
    check(&fixture, &order[9], CellState::Waiting, Reason::Paused);
    let fixture = fixture.annotate("freeze", "tea");
    check(&fixture, &order[9], CellState::Waiting, Reason::Frozen);
}

#[test]
fn a_node_is_updating_while_its_pods_change() {
    let mut fixture = staged();
    let order = fixture.order();
    change(&mut fixture, &order[0], |pod| pod.ready_since = None);
    check(&fixture, &order[0], CellState::Updating, Reason::Starting);
    change(&mut fixture, &order[0], |pod| pod.terminating = true);
    check(&fixture, &order[0], CellState::Updating, Reason::Stopping);
    let on = |pod: &PodView| pod.bound_to.as_deref() != Some(&*order[0]);
    fixture.pods.retain(on);
    check(&fixture, &order[0], CellState::Updating, Reason::NoPod);
    let old = fixture.pods.iter().find(|pod| {
        let hash = pod.labels.get(HASH_LABEL).map(String::as_str);
        hash == Some("old")
    });
    let mut second = old.unwrap().clone();
    second.uid = "second".into();
    second.bound_to = Some(order[1].as_str().into());
    fixture.pods.push(second);
    check(
        &fixture,
        &order[1],
        CellState::Updating,
        Reason::OldPodStays,
    );
    fixture.set.min_ready_seconds = 3600;
    let since = Some(Timestamp::from_secs(NOW - 60));
    change(&mut fixture, &order[2], |pod| pod.ready_since = since);
    let reason = Reason::MinReadySeconds;
    check(&fixture, &order[2], CellState::Updating, reason);
}

#[test]
fn failures_are_named() {
    let failed = |health: Health, ready: bool| {
        let mut fixture = staged();
        let node = fixture.order()[0].clone();
        change(&mut fixture, &node, |pod| {
            pod.health = health;
            pod.ready_since = pod.ready_since.filter(|_| ready);
        });
        (fixture, node)
    };
    let health = Health::default();
    let restarts = Health {
        restarts: 3,
        ..health
    };
    for ready in [false, true] {
        let (fixture, node) = failed(restarts, ready);
        check(&fixture, &node, CellState::Failed, Reason::Restarts(3));
    }
    let waiting = Waiting::ImagePull;
    let (fixture, node) = failed(Health { waiting, ..health }, false);
    let reason = Reason::Waiting(waiting);
    check(&fixture, &node, CellState::Failed, reason);
    let (mut fixture, node) = failed(health, false);
    let long_ago = Timestamp::from_secs(NOW - 600);
    change(&mut fixture, &node, |pod| pod.created = long_ago);
    check(&fixture, &node, CellState::Failed, Reason::Late);
    change(&mut fixture, &node, |pod| pod.phase = PodPhase::Failed);
    check(&fixture, &node, CellState::Failed, Reason::PodFailed);
    // Restarts of long ago fail nothing once the rollout is over.
    let (fixture, node) = failed(restarts, true);
    let mut complete = state(Phase::Complete, 2, ALL);
    complete.stable = None;
    let fixture = fixture.record(Verdict::Stable, complete);
    check(&fixture, &node, CellState::New, Reason::Runs);
}

#[test]
fn a_way_back_ends_with_old_nodes() {
    let fixture = staged();
    let order = fixture.order();
    let back = state(Phase::RollingBack, 1, Cut::Nothing);
    let fixture = fixture.record(Verdict::Failed, back);
    check(&fixture, &order[0], CellState::New, Reason::GoesBack);
    check(&fixture, &order[9], CellState::Old, Reason::Held);
}

#[test]
fn nodes_that_are_down_or_not_selected_are_told_apart() {
    let mut fixture = staged();
    let order = fixture.order();
    fixture = fixture.down(&order[0]);
    check(&fixture, &order[0], CellState::Down, Reason::NodeUnknown);
    let taint = Taint::new("gpu", "NoSchedule");
    let tainted = |node: &&mut NodeView| *node.name == *order[1];
    fixture.nodes.iter_mut().find(tainted).unwrap().taints = vec![taint];
    let reason = Reason::Excluded(Exclusion::Taint);
    check(&fixture, &order[1], CellState::NotEligible, reason);
}

#[test]
fn counts_are_by_state_and_by_group() {
    let fixture = staged();
    let order = fixture.order();
    let fixture = fixture.label(&order[0], "zone", "a");
    let fixture = fixture.label(&order[9], "zone", "a");
    let fixture = fixture.label(&order[8], "zone", "b");
    let nodes = nodes(&fixture);
    let picture = picture(&fixture, &nodes, Timestamp::from_secs(NOW));
    let numbers = |counts: Counts| (counts[CellState::New], counts[CellState::Waiting]);
    assert_eq!(numbers(picture.counts()), (3, 7));
    let groups = picture.counts_by(&nodes, "zone");
    assert_eq!(numbers(groups["a"]), (1, 1));
    assert_eq!(numbers(groups["b"]), (0, 1));
    assert_eq!(numbers(groups[""]), (2, 5));
    assert_eq!(nodes.group_labels(), ["zone"]);
    let json = serde_json::to_value(picture.counts()).unwrap();
    assert_eq!(
        (&json["new"], &json["not-eligible"]),
        (&3.into(), &0.into())
    );
}

#[test]
fn time_alone_makes_a_pod_late() {
    let mut fixture = staged();
    let node = fixture.order()[0].clone();
    change(&mut fixture, &node, |pod| pod.ready_since = None);
    let nodes = nodes(&fixture);
    let now = Timestamp::from_secs(NOW);
    let mut picture = picture(&fixture, &nodes, now);
    let index = nodes.index(&node).unwrap();
    assert_eq!(picture.state(index), Some(CellState::Updating));
    assert!(!picture.is_stale(now));
    // Created two minutes ago, with ten minutes until the deadline.
    let late = now + Duration::from_mins(8);
    assert_eq!(picture.next_recheck(), Some(late));
    assert!(picture.is_stale(late) && picture.refresh(&nodes, late));
    assert_eq!(picture.reason(index), Some(Reason::Late));
    assert_eq!(picture.next_recheck(), None);
}

/// One random change, to the fixture and to the picture.
struct History {
    rng: fastrand::Rng,
    fixture: Fixture,
    nodes: Nodes,
    picture: Picture,
    now: Timestamp,
}

impl History {
    fn step(&mut self) {
        match self.rng.u8(..12) {
            0..=4 => self.change_pod(),
            5 => self.remove_pod(),
            6 => self.add_pod(),
            7 => self.change_node(),
            8 => self.remove_or_return_node(),
            9 => self.change_revision(),
            10 => self.change_set(),
            _ => self.now = self.now + Duration::from_secs(self.rng.u64(1..400)),
        }
    }

    fn some_pod(&mut self) -> Option<usize> {
        let count = self.fixture.pods.len();
        (count > 0).then(|| self.rng.usize(..count))
    }

    fn change_pod(&mut self) {
        let Some(index) = self.some_pod() else {
            return;
        };
        let hash = ["old", "new", "unknown"][self.rng.usize(..3)];
        let pod = &mut self.fixture.pods[index];
        match self.rng.u8(..7) {
            0 => pod.ready_since = None,
            1 => pod.ready_since = Some(self.now),
            2 => pod.terminating = true,
            3 => pod.health.restarts += 1,
            4 => pod.health.waiting = Waiting::ImagePull,
            5 => pod.controller = pod.controller.take().xor(Some("uid-agent".into())),
            _ => {
                let mut labels = (*pod.labels).clone();
                labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
                pod.labels = Arc::new(labels);
            }
        }
        self.picture.apply_pod(pod.clone());
    }

    fn remove_pod(&mut self) {
        if let Some(index) = self.some_pod() {
            let pod = self.fixture.pods.swap_remove(index);
            self.picture.remove_pod(&pod.uid);
        }
    }

    fn add_pod(&mut self) {
        let Some(index) = self.some_pod() else {
            return;
        };
        let mut pod = self.fixture.pods[index].clone();
        pod.uid = format!("uid-{}", self.rng.u64(..)).into();
        pod.name = pod.uid.clone();
        // Perhaps on a node that is not known yet.
        pod.bound_to = Some(format!("n{}", self.rng.u8(1..12)).into());
        pod.created = self.now;
        self.fixture.pods.push(pod.clone());
        self.picture.apply_pod(pod);
    }

    fn enter_node(&mut self, node: NodeView) {
        if let Some(index) = self.nodes.apply(node) {
            self.picture.touch_node(index);
        }
    }

    fn change_node(&mut self) {
        let index = self.rng.usize(..self.fixture.nodes.len());
        let node = &mut self.fixture.nodes[index];
        match self.rng.u8(..3) {
            0 => node.ready = [Readiness::Ready, Readiness::Unknown][self.rng.usize(..2)],
            1 => drop(node.labels.insert("pool".to_owned(), "canary".to_owned())),
            _ => {
                let taint = Taint::new("x", "NoExecute");
                node.taints = vec![taint; self.rng.usize(..2)];
            }
        }
        let node = node.clone();
        self.enter_node(node);
    }

    fn remove_or_return_node(&mut self) {
        let index = self.rng.usize(..self.fixture.nodes.len());
        let node = self.fixture.nodes[index].clone();
        match self.nodes.remove(&node.name) {
            Some(index) => self.picture.touch_node(index),
            None => self.enter_node(node),
        }
    }

    fn change_revision(&mut self) {
        let order = self.fixture.order();
        let last = order[self.rng.usize(..order.len())].clone();
        let verdicts = [Verdict::Progressing, Verdict::Stable, Verdict::Failed];
        let phases = [Phase::Updating, Phase::Baking, Phase::Paused, Phase::Held];
        let phase = phases[self.rng.usize(..phases.len())];
        let record = &mut self.fixture.revisions[1].record;
        record.verdict = Some(verdicts[self.rng.usize(..verdicts.len())]);
        record.state = match self.rng.u8(..4) {
            0 => None,
            stage => Some(state(phase, stage.into(), Cut::Node(last))),
        };
        let revision = self.fixture.revisions[1].clone();
        if self.rng.u8(..4) == 0 {
            self.picture.remove_revision(&revision.uid);
        }
        self.picture.apply_revision(revision);
    }

    fn change_set(&mut self) {
        let annotations = [
            ("stages", "30%, 100%"),
            ("stages", "nodes(pool=canary), 1, 100%"),
            ("pause", "lunch"),
            ("policy", "none"),
        ];
        let mut set = self.fixture.set.clone();
        match self.rng.usize(..annotations.len() + 2) {
            0 => set.annotations = Arc::default(),
            1 => set.status.updated += 1,
            other => {
                let (key, value) = annotations[other - 2];
                let mut all = (*set.annotations).clone();
                all.insert(format!("{}{key}", crate::rollout::PREFIX), value.to_owned());
                set.annotations = Arc::new(all);
            }
        }
        self.fixture.set = set.clone();
        self.picture.set_daemon_set(set);
    }

    fn compare(&mut self) {
        if self.picture.is_stale(self.now) {
            self.picture.refresh(&self.nodes, self.now);
        }
        let anew = picture(&self.fixture, &self.nodes, self.now);
        let text = |letters: &[u8]| String::from_utf8_lossy(letters).into_owned();
        let indexes = 0..self.nodes.len();
        assert_eq!(text(self.picture.letters()), text(anew.letters()));
        for index in indexes {
            assert_eq!(self.picture.reason(index), anew.reason(index), "{index}");
        }
        let counted = Counts::of_letters(anew.letters());
        assert_eq!(self.picture.counts(), counted);
        assert_eq!(self.picture.next_recheck(), anew.next_recheck());
    }
}

#[test]
fn a_picture_kept_up_to_date_is_the_one_made_anew() {
    with_seeds(0..60, |seed| {
        let fixture = staged();
        let nodes = nodes(&fixture);
        let now = Timestamp::from_secs(NOW);
        let picture = picture(&fixture, &nodes, now);
        let mut history = History {
            rng: fastrand::Rng::with_seed(seed),
            fixture,
            nodes,
            picture,
            now,
        };
        for _ in 0..120 {
            for _ in 0..history.rng.u8(1..4) {
                history.step();
            }
            history.compare();
        }
    });
}
