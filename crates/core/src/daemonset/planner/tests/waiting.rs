//! R12: nodes wait for their daemons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_test_support::with_seeds;
use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::super::super::event::{Event, Failure, FailureKind, Write};
use super::super::super::options::Options;
use super::super::super::required::{ANNOTATION, TAINT, is_missing, taint, waits};
use super::super::super::view::{Before, DaemonSetView, NodeView, PodView};
use super::harness::{Harness, terminating, unready};
use super::{NOTHING, daemon_set, node, pod};
use crate::taint::Taint;

fn annotated(mut view: DaemonSetView, annotations: &[(&str, &str)]) -> DaemonSetView {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    view.annotations = Arc::new(annotations.iter().map(owned).collect());
    view
}

fn required(name: &str) -> DaemonSetView {
    annotated(daemon_set(name), &[(ANNOTATION, "true")])
}

/// With this spec of its template.
fn with_spec(mut view: DaemonSetView, spec: &Value) -> DaemonSetView {
    let labels = json!({"app": &*view.name});
    view.template = Arc::new(json!({"metadata": {"labels": labels}, "spec": spec}));
    view
}

fn waiting(name: &str) -> NodeView {
    let mut view = node(name);
    view.taints = vec![taint()];
    view
}

fn ready(name: &str, set: &str, on: &str) -> PodView {
    let mut view = pod(name, set, on);
    view.ready_since = Some(Timestamp::EPOCH);
    view
}

/// A planner with these DaemonSets that shows events on nodes, but no other writes than removals of taints.
struct Waits {
    harness: Harness,
}

impl Waits {
    fn new(options: Options, sets: &[DaemonSetView]) -> Self {
        let mut waits = Self {
            harness: Harness::new(options, &[]),
        };
        waits.harness.show_events = true;
        for set in sets {
            waits.apply(Event::DaemonSet(set.clone()));
        }
        waits
    }

    fn of(sets: &[DaemonSetView]) -> Self {
        Self::new(Options::default(), sets)
    }

    fn apply(&mut self, event: Event) -> Vec<String> {
        let shown = self.harness.apply(event);
        Self::about_nodes(shown)
    }

    fn about_nodes(shown: Vec<String>) -> Vec<String> {
        let about = |text: &String| text.starts_with("untaint") || text.contains(" Daemons");
        shown.into_iter().filter(about).collect()
    }

    fn advance(&mut self, seconds: i64) -> Vec<String> {
        Self::about_nodes(self.harness.advance(seconds * 1000))
    }

    fn untainted(&mut self, failure: Option<FailureKind>) -> Vec<String> {
        let (ticket, _) = self.harness.untaints.remove(0);
        let failure = failure.map(|kind| Failure {
            kind,
            message: "no".to_owned(),
            retry_after: None,
        });
        self.apply(Event::TaintRemoved { ticket, failure })
    }

    /// The body of the pod that was requested for a node.
    fn created(&self, on: &str) -> Value {
        let body = self.harness.open.iter().find_map(|(_, write)| match write {
            Write::CreatePod {
                node, blueprint, ..
            } if **node == *on => Some(blueprint.pod(on, None, Before::None)),
            _ => None,
        });
        serde_json::from_str(&body.unwrap()).unwrap()
    }
}

const WAITS_FOR_CNI: &str =
    "n1 DaemonsNotReady: Waiting for DaemonSet default/cni before other pods are placed here";
const READY: &str = "n1 DaemonsReady: All required DaemonSets are available: removed taint \
                     kennel.dev/daemons-not-ready";

#[test]
fn r12_3_the_taint_goes_once_every_required_daemon_is_available() {
    let mut waits = Waits::of(&[required("cni"), required("csi"), daemon_set("logs")]);
    let both = "n1 DaemonsNotReady: Waiting for DaemonSets default/cni, default/csi before other pods \
                are placed here";
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), [both]);
    assert_eq!(waits.apply(Event::Pod(pod("c1", "cni", "n1"))), NOTHING);
    assert_eq!(waits.apply(Event::Pod(ready("s1", "csi", "n1"))), NOTHING);
    assert_eq!(
        waits.apply(Event::Pod(ready("c1", "cni", "n1"))),
        ["untaint n1"]
    );
    assert_eq!(waits.untainted(None), [READY]);
    assert_eq!(waits.apply(Event::Node(node("n1"))), NOTHING);
}

#[test]
fn r12_3_the_event_follows_what_is_missing_and_is_repeated() {
    let mut waits = Waits::of(&[required("cni"), required("csi")]);
    waits.apply(Event::Node(waiting("n1")));
    assert_eq!(waits.apply(Event::Pod(ready("s1", "csi", "n1"))), NOTHING);
    assert_eq!(waits.advance(29), NOTHING);
    assert_eq!(waits.advance(1), [WAITS_FOR_CNI]);
    assert_eq!(waits.advance(29 * 60), NOTHING);
    assert_eq!(waits.advance(60), [WAITS_FOR_CNI]);
}

#[test]
fn r12_3_min_ready_seconds_count() {
    let mut slow = required("cni");
    slow.min_ready_seconds = 10;
    let mut waits = Waits::of(&[slow]);
    waits.apply(Event::Node(waiting("n1")));
    let mut view = pod("c1", "cni", "n1");
    view.ready_since = Some(waits.harness.now);
    assert_eq!(waits.apply(Event::Pod(view)), NOTHING);
    assert_eq!(waits.advance(9), NOTHING);
    assert_eq!(waits.advance(1), ["untaint n1"]);
}

#[test]
fn r12_3_pods_that_leave_or_have_ended_are_not_available() {
    let mut waits = Waits::of(&[required("cni")]);
    waits.apply(Event::Node(waiting("n1")));
    let leaving = terminating(ready("c1", "cni", "n1"));
    assert_eq!(waits.apply(Event::Pod(leaving)), NOTHING);
    assert_eq!(waits.apply(Event::PodGone("uid-c1".into())), NOTHING);
    assert_eq!(
        waits.apply(Event::Pod(unready(ready("c2", "cni", "n1")))),
        NOTHING
    );
    assert_eq!(waits.apply(Event::Pod(ready("c3", "cni", "n2"))), NOTHING);
}

#[test]
fn r12_3_a_node_that_no_required_daemon_selects_does_not_wait() {
    let ssd = json!({"nodeSelector": {"disk": "ssd"}});
    let mut waits = Waits::of(&[with_spec(required("cni"), &ssd)]);
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), ["untaint n1"]);
    // A kubelet that registers with the taint although nothing is required.
    let mut waits = Waits::of(&[daemon_set("logs")]);
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), ["untaint n1"]);
}

#[test]
fn r12_3_a_node_that_is_not_ready_waits_for_daemons_that_do_not_tolerate_that() {
    let mut waits = Waits::of(&[required("cni")]);
    let mut view = waiting("n1");
    view.taints
        .push(Taint::new("node.kubernetes.io/not-ready", "NoSchedule"));
    assert_eq!(waits.apply(Event::Node(view)), [WAITS_FOR_CNI]);
}

#[test]
fn r12_3_nothing_is_removed_before_everything_is_known() {
    let mut planner = super::super::Planner::new(Options::default());
    let now = Timestamp::from_secs(1);
    planner.apply(now, Event::Node(waiting("n1")));
    assert!(planner.take_actions().is_empty());
    planner.apply(now, Event::Synced);
    assert_eq!(planner.take_actions().len(), 1);
}

#[test]
fn r12_3_a_failed_removal_is_repeated_and_a_late_watch_causes_none() {
    let mut waits = Waits::of(&[]);
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), ["untaint n1"]);
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), NOTHING);
    assert_eq!(waits.untainted(Some(FailureKind::Refused)), NOTHING);
    assert_eq!(waits.advance(1), ["untaint n1"]);
    assert_eq!(waits.untainted(None), [READY]);
    let mut late = waiting("n1");
    late.labels.insert("zone".to_owned(), "a".to_owned());
    assert_eq!(waits.apply(Event::Node(late)), NOTHING);
    assert_eq!(waits.apply(Event::Node(node("n1"))), NOTHING);
    assert_eq!(waits.advance(3600), NOTHING);
}

#[test]
fn r12_3_a_node_that_is_gone_needs_nothing_more() {
    let mut waits = Waits::of(&[required("cni")]);
    waits.apply(Event::Node(waiting("n1")));
    assert_eq!(waits.apply(Event::NodeGone("n1".into())), NOTHING);
    assert_eq!(waits.advance(3600), NOTHING);
    let mut waits = Waits::of(&[]);
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), ["untaint n1"]);
    waits.apply(Event::NodeGone("n1".into()));
    // Another node gets its id.
    waits.apply(Event::DaemonSet(required("cni")));
    let other = waits.apply(Event::Node(waiting("n2")));
    assert_eq!(other, [WAITS_FOR_CNI.replace("n1", "n2")]);
    assert_eq!(waits.untainted(None), [READY]);
    assert_eq!(waits.advance(1800), [WAITS_FOR_CNI.replace("n1", "n2")]);
}

#[test]
fn r12_3_requirements_may_change_while_a_node_waits() {
    let mut waits = Waits::of(&[required("cni")]);
    waits.apply(Event::Node(waiting("n1")));
    let not = annotated(daemon_set("cni"), &[(ANNOTATION, "false")]);
    assert_eq!(waits.apply(Event::DaemonSet(not)), ["untaint n1"]);

    let mut waits = Waits::of(&[required("cni")]);
    waits.apply(Event::Node(waiting("n1")));
    let gone = Event::DaemonSetGone("uid-cni".into());
    assert_eq!(waits.apply(gone), ["untaint n1"]);

    let mut waits = Waits::of(&[required("cni")]);
    waits.apply(Event::Node(waiting("n1")));
    let mut elsewhere = with_spec(required("cni"), &json!({"nodeSelector": {"disk": "ssd"}}));
    elsewhere.generation = 2;
    assert_eq!(waits.apply(Event::DaemonSet(elsewhere)), ["untaint n1"]);

    let mut waits = Waits::of(&[required("cni")]);
    waits.apply(Event::Node(waiting("n1")));
    let mut leaving = required("cni");
    leaving.terminating = true;
    assert_eq!(waits.apply(Event::DaemonSet(leaving)), ["untaint n1"]);
}

#[test]
fn r12_2_daemon_set_pods_tolerate_the_taint_only_while_some_daemon_set_is_required() {
    let ours = json!({"key": TAINT, "operator": "Exists", "effect": "NoSchedule"});
    let tolerates = |waits: &Waits, on: &str| {
        let tolerations = waits.created(on)["spec"]["tolerations"].clone();
        tolerations.as_array().unwrap().contains(&ours)
    };
    let mut waits = Waits::of(&[daemon_set("logs")]);
    waits.apply(Event::Node(node("before")));
    assert!(!tolerates(&waits, "before"));
    // Like any taint that it does not tolerate.
    waits.apply(Event::Node(waiting("kept")));
    assert_eq!(waits.harness.counters("logs")[0], 1);

    waits.apply(Event::DaemonSet(required("cni")));
    assert_eq!(waits.harness.counters("logs")[0], 2);
    waits.apply(Event::Node(waiting("during")));
    assert!(tolerates(&waits, "during"));

    waits.apply(Event::DaemonSetGone("uid-cni".into()));
    waits.apply(Event::Node(node("after")));
    assert!(!tolerates(&waits, "after"));
}

#[test]
fn r12_2_running_pods_are_not_replaced_for_the_toleration() {
    let mut waits = Waits::of(&[daemon_set("ds")]);
    waits.apply(Event::Node(node("n1")));
    waits.apply(Event::Pod(super::harness::updated("p", "n1")));
    waits.harness.open.clear();
    waits.apply(Event::DaemonSet(required("cni")));
    let writes: Vec<String> = waits
        .harness
        .open
        .iter()
        .map(|(_, w)| super::harness::show(w))
        .collect();
    assert_eq!(
        writes,
        ["create n1"],
        "only the pod of the required DaemonSet"
    );
}

#[test]
fn r12_2_where_another_controller_makes_the_pods_a_template_without_the_toleration_ends_the_wait() {
    let assist = Options {
        assist: true,
        ..Options::default()
    };
    let mut waits = Waits::new(assist, &[required("cni")]);
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), ["untaint n1"]);
    let text = "n1 DaemonsCannotTolerate: Removed taint kennel.dev/daemons-not-ready: the template of \
                DaemonSet default/cni does not tolerate it, and another controller creates the pods";
    assert_eq!(waits.untainted(None), [text]);

    let tolerant = json!({"tolerations": [{"key": TAINT, "operator": "Exists"}]});
    let mut waits = Waits::new(assist, &[with_spec(required("cni"), &tolerant)]);
    assert_eq!(waits.apply(Event::Node(waiting("n1"))), [WAITS_FOR_CNI]);
    let available = waits.apply(Event::Pod(ready("c1", "cni", "n1")));
    assert_eq!(available, ["untaint n1"]);
}

#[test]
fn r12_4_a_required_daemon_does_not_wait_for_another_one() {
    let mut waits = Waits::of(&[required("cni"), required("csi"), daemon_set("logs")]);
    waits.apply(Event::Node(waiting("n1")));
    for set in ["cni", "csi", "logs"] {
        assert_eq!(waits.harness.counters(set)[0], 1, "{set}");
    }
    let created = waits.harness.open.iter();
    let created = created.filter(|(_, write)| matches!(write, Write::CreatePod { .. }));
    assert_eq!(created.count(), 3);
}

/// The DaemonSets that a node waits for, computed from scratch.
fn expected(
    sets: &BTreeMap<Arc<str>, DaemonSetView>,
    pods: &BTreeMap<Arc<str>, PodView>,
    node: &NodeView,
) -> BTreeSet<Arc<str>> {
    let pods: Vec<PodView> = pods.values().cloned().collect();
    let now = Timestamp::from_secs(1_000_000);
    let missing = sets
        .values()
        .filter(|set| is_missing(set, &pods, node, now));
    missing.map(|set| set.name.clone()).collect()
}

/// A random history, and what is known of the cluster.
struct History {
    rng: fastrand::Rng,
    waits: Waits,
    sets: BTreeMap<Arc<str>, DaemonSetView>,
    pods: BTreeMap<Arc<str>, PodView>,
    nodes: BTreeMap<Arc<str>, NodeView>,
    /// Waiting nodes whose taint was asked to be removed.
    released: BTreeSet<Arc<str>>,
}

impl History {
    fn new(seed: u64) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            waits: Waits::of(&[]),
            sets: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            released: BTreeSet::new(),
        }
    }

    fn event(&mut self) -> Event {
        let name = ["a", "b", "c"][self.rng.usize(..3)];
        let on = ["n1", "n2", "n3", "n4"][self.rng.usize(..4)];
        match self.rng.u8(..8) {
            0 => Event::DaemonSet(self.set(name)),
            1 => {
                let uid: Arc<str> = format!("uid-{name}").into();
                self.sets.remove(&uid);
                Event::DaemonSetGone(uid)
            }
            2 | 3 => Event::Node(self.node(on)),
            4 => {
                self.nodes.remove(on);
                self.released.remove(on);
                Event::NodeGone(on.into())
            }
            5 | 6 => {
                let mut view = pod(&format!("{name}-{on}"), name, on);
                view.ready_since = self.rng.bool().then_some(Timestamp::EPOCH);
                view.terminating = self.rng.u8(..4) == 0;
                self.pods.insert(view.uid.clone(), view.clone());
                Event::Pod(view)
            }
            _ => {
                let uid: Arc<str> = format!("uid-{name}-{on}").into();
                self.pods.remove(&uid);
                Event::PodGone(uid)
            }
        }
    }

    fn set(&mut self, name: &str) -> DaemonSetView {
        let mut set = daemon_set(name);
        if self.rng.bool() {
            set = required(name);
        }
        if self.rng.bool() {
            set = with_spec(set, &json!({"nodeSelector": {"zone": "a"}}));
        }
        self.sets.insert(set.uid.clone(), set.clone());
        set
    }

    fn node(&mut self, name: &str) -> NodeView {
        let mut view = node(name);
        if self.rng.bool() {
            view = waiting(name);
        }
        if self.rng.bool() {
            view.labels.insert("zone".to_owned(), "a".to_owned());
        }
        if !self.nodes.get(name).is_some_and(waits) || !waits(&view) {
            self.released.remove(name);
        }
        self.nodes.insert(view.name.clone(), view.clone());
        view
    }

    fn step(&mut self) {
        let event = self.event();
        let shown = self.waits.apply(event);
        let untainted = shown
            .iter()
            .filter_map(|text| text.strip_prefix("untaint "));
        let untainted: BTreeSet<Arc<str>> = untainted.map(Into::into).collect();
        self.released.extend(untainted.iter().cloned());
        for (name, view) in &self.nodes {
            let missing = expected(&self.sets, &self.pods, view);
            if untainted.contains(name) {
                assert!(
                    missing.is_empty(),
                    "{name} was released without {missing:?}"
                );
            }
            let stays = waits(view) && missing.is_empty() && !self.released.contains(name);
            assert!(!stays, "{name} still waits");
        }
    }
}

/// After every event exactly those waiting nodes have been released for which nothing is missing.
#[test]
fn r12_3_random_histories_agree_with_the_rule_computed_from_scratch() {
    with_seeds(0..200, |seed| {
        let mut history = History::new(seed);
        for _ in 0..100 {
            history.step();
        }
    });
}
