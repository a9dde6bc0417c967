//! The monitor with a few nodes, second by second.

use kennel_types::ConditionType;

use super::*;
use crate::lifecycle::conditions::Conditions;
use crate::taint::Taint;

/// A monitor, and an API that carries out writes at once.
struct Fixture {
    monitor: Monitor,
    nodes: BTreeMap<String, NodeFacts>,
    version: u64,
    now: u64,
    /// As `second: action`.
    done: Vec<String>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            monitor: Monitor::new(Settings::default()),
            nodes: BTreeMap::new(),
            version: 1,
            now: 0,
            done: Vec::new(),
        }
    }

    /// With this many ready nodes, `n1` and so on, with recent heartbeats.
    fn with(count: usize) -> Self {
        let mut fixture = Self::new();
        for number in 1..=count {
            fixture.report(&format!("n{number}"), ConditionStatus::True);
        }
        fixture.monitor.on_synced(fixture.time());
        fixture.run(0);
        fixture.done.clear();
        fixture
    }

    fn time(&self) -> Monotonic {
        Monotonic::since_start(Duration::from_secs(self.now))
    }

    /// A node reports its `Ready` condition.
    fn report(&mut self, name: &str, ready: ConditionStatus) {
        let heartbeat = Timestamp::from_secs(i64::try_from(self.now).unwrap());
        let node = self.nodes.entry(name.to_owned()).or_insert(NodeFacts {
            name: name.into(),
            uid: name.into(),
            version: "0".into(),
            created: Some(Timestamp::EPOCH),
            zone: "".into(),
            excluded: false,
            conditions: Conditions::default(),
            heartbeat: None,
            unschedulable: false,
            taints: Vec::new(),
        });
        node.conditions.set(&ConditionType::Ready, ready);
        node.heartbeat = Some(heartbeat);
        self.changed(name);
    }

    /// A node has a new version, which the monitor observes.
    fn changed(&mut self, name: &str) {
        self.version += 1;
        let node = self.nodes.get_mut(name).unwrap();
        node.version = self.version.to_string().into();
        let facts = node.clone();
        self.monitor.on_node(self.time(), facts);
    }

    fn renew(&mut self, name: &str, renewed: i64) {
        self.monitor.on_lease(self.time(), name, Some(renewed));
    }

    fn pod(&mut self, name: &str, node: &str, ready: bool) {
        let pod = NodePod {
            id: Identity::new("ns", name, name),
            node: node.into(),
            data: ready,
        };
        self.monitor.on_pod(pod);
    }

    /// Lets time pass until then; the nodes renew their leases every ten seconds.
    fn run_with(&mut self, until: u64, living: &[&str]) {
        self.act();
        while self.now < until {
            self.now += 1;
            if self.now.is_multiple_of(10) {
                for name in living {
                    self.renew(name, i64::try_from(self.now).unwrap());
                }
            }
            self.act();
        }
    }

    fn run(&mut self, until: u64) {
        self.run_with(until, &[]);
    }

    fn act(&mut self) {
        loop {
            let actions = self.monitor.take_actions(self.time());
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.carry_out(action);
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        let (what, wrote) = match action {
            Action::SetUnknown {
                node, conditions, ..
            } => {
                let of = self.nodes.get_mut(&*node.name).unwrap();
                assert_eq!(of.version, node.version, "the newest is known");
                for condition in conditions {
                    of.conditions
                        .set(&condition.r#type, ConditionStatus::Unknown);
                }
                (format!("{} unknown", node.name), Some(node.name))
            }
            Action::SetTaints { node, change } => {
                let of = self.nodes.get_mut(&*node.name).unwrap();
                assert_eq!(of.version, node.version, "the newest is known");
                let add = change.add.into_iter().map(|taint| Taint {
                    time_added: Some(Timestamp::EPOCH),
                    ..taint
                });
                of.taints = change.keep.into_iter().chain(add).collect();
                let taints = of.taints.iter().map(|found| {
                    let key = found.key.replace("node.kubernetes.io/", "");
                    format!(" {key}:{}", found.effect)
                });
                let taints: String = taints.collect();
                (format!("{} tainted{taints}", node.name), Some(node.name))
            }
            Action::MarkNotReady(pod) => (format!("pod {} not ready", pod.name), None),
            Action::RecordEvent { name, event, .. } => (format!("{name} {event:?}"), None),
        };
        self.done.push(format!("{}: {what}", self.now));
        if let Some(name) = wrote {
            self.changed(&name);
            let version = self.nodes[&*name].version.clone();
            self.monitor.on_written(&name, &name, &version);
        }
    }

    /// Checks and clears the actions.
    fn check(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.done), expected);
    }
}

const BOTH: &str = "unreachable:NoSchedule unreachable:NoExecute";

#[test]
fn a_node_without_heartbeats_becomes_unknown_and_its_pods_not_ready() {
    let mut fixture = Fixture::with(2);
    fixture.pod("ready", "n1", true);
    fixture.pod("waiting", "n1", false);
    fixture.pod("elsewhere", "n2", true);
    fixture.run_with(49, &["n2"]);
    fixture.check(&[]);
    fixture.run_with(200, &["n2"]);
    fixture.check(&[
        "50: n1 unknown",
        "50: n1 NotReady",
        "50: pod ready not ready",
        &format!("50: n1 tainted {BOTH}"),
    ]);
}

#[test]
fn a_node_that_comes_back_loses_its_taints() {
    let mut fixture = Fixture::with(2);
    fixture.run_with(60, &["n2"]);
    fixture.done.clear();
    fixture.renew("n1", 1);
    fixture.run_with(70, &["n1", "n2"]);
    fixture.check(&[]);
    fixture.report("n1", ConditionStatus::True);
    fixture.run_with(200, &["n1", "n2"]);
    fixture.check(&["70: n1 tainted"]);
}

#[test]
fn a_node_that_reports_not_ready_is_tainted_at_once() {
    let mut fixture = Fixture::with(2);
    fixture.pod("p", "n1", true);
    fixture.report("n1", ConditionStatus::False);
    fixture.run_with(100, &["n1", "n2"]);
    fixture.check(&["0: n1 tainted not-ready:NoSchedule not-ready:NoExecute"]);
    fixture.run_with(200, &["n2"]);
    fixture.check(&["150: n1 unknown", &format!("150: n1 tainted {BOTH}")]);
}

#[test]
fn only_changes_of_a_lease_count_whatever_its_renew_time() {
    let mut fixture = Fixture::with(2);
    for (second, renewed) in [(10, 5_000), (20, 4_000), (30, -3), (40, -3), (60, -3)] {
        fixture.run_with(second, &["n2"]);
        fixture.renew("n1", renewed);
    }
    fixture.run_with(79, &["n2"]);
    fixture.check(&[]);
    fixture.run_with(80, &["n2"]);
    assert_eq!(fixture.done[0], "80: n1 unknown");
}

#[test]
fn a_reported_status_is_a_heartbeat_too() {
    let mut fixture = Fixture::with(2);
    fixture.run_with(40, &["n2"]);
    fixture.report("n1", ConditionStatus::True);
    fixture.run_with(70, &["n2"]);
    fixture.nodes.get_mut("n1").unwrap().unschedulable = true;
    fixture.changed("n1");
    fixture.run_with(89, &["n2"]);
    fixture.check(&["70: n1 tainted unschedulable:NoSchedule"]);
    fixture.run_with(90, &["n2"]);
    assert_eq!(fixture.done[0], "90: n1 unknown");
}

#[test]
fn a_node_that_never_reports_gets_the_startup_grace_period() {
    let mut fixture = Fixture::with(1);
    let unreported = NodeFacts {
        name: "n2".into(),
        uid: "n2".into(),
        conditions: Conditions::default(),
        heartbeat: None,
        ..fixture.nodes["n1"].clone()
    };
    fixture.nodes.insert("n2".to_owned(), unreported);
    fixture.changed("n2");
    fixture.run_with(59, &["n1"]);
    fixture.check(&["0: n2 Registered"]);
    fixture.run_with(100, &["n1"]);
    let tainted = format!("60: n2 tainted {BOTH}");
    fixture.check(&["60: n2 unknown", &tainted]);
}

#[test]
fn a_node_that_reports_gets_the_shorter_grace_period() {
    let mut fixture = Fixture::with(1);
    let new = NodeFacts {
        name: "n2".into(),
        uid: "n2".into(),
        conditions: Conditions::default(),
        heartbeat: None,
        ..fixture.nodes["n1"].clone()
    };
    fixture.nodes.insert("n2".to_owned(), new);
    fixture.changed("n2");
    fixture.run_with(5, &["n1"]);
    fixture.report("n2", ConditionStatus::True);
    fixture.run_with(54, &["n1"]);
    fixture.check(&["0: n2 Registered"]);
    fixture.run_with(55, &["n1"]);
    assert_eq!(fixture.done[0], "55: n2 unknown");
}

#[test]
fn after_a_start_grace_periods_begin_anew_and_unmarked_pods_are_marked() {
    let mut fixture = Fixture::new();
    fixture.now = 1_000;
    fixture.report("n1", ConditionStatus::True);
    fixture.report("n2", ConditionStatus::Unknown);
    fixture.pod("p", "n2", true);
    fixture.run_with(1_100, &[]);
    fixture.check(&["1000: n1 Registered", "1000: n2 Registered"]);
    fixture.monitor.on_synced(fixture.time());
    fixture.act();
    assert_eq!(fixture.done[0], "1100: pod p not ready");
    fixture.run_with(1_200, &[]);
    assert!(fixture.done.contains(&"1150: n1 unknown".to_owned()));
}

#[test]
fn pods_bound_to_an_unready_node_are_marked() {
    let mut fixture = Fixture::with(2);
    fixture.report("n1", ConditionStatus::False);
    fixture.act();
    fixture.done.clear();
    fixture.pod("early", "n1", false);
    fixture.pod("early", "n1", true);
    fixture.pod("moved", "n2", true);
    fixture.pod("moved", "n1", true);
    fixture.act();
    fixture.check(&["0: pod moved not ready"]);
    fixture.monitor.retry_pod(&"moved".into());
    fixture.act();
    fixture.check(&["0: pod moved not ready"]);
    fixture.report("n1", ConditionStatus::True);
    fixture.monitor.retry_pod(&"moved".into());
    fixture.act();
    fixture.check(&["0: n1 tainted"]);
}

#[test]
fn nodes_that_fail_together_are_tainted_one_by_one() {
    let mut fixture = Fixture::with(10);
    let living = ["n4", "n5", "n6", "n7", "n8", "n9", "n10"];
    fixture.run_with(100, &living);
    let evicted = fixture
        .done
        .iter()
        .filter(|what| what.contains("NoExecute"));
    let evicted: Vec<_> = evicted.map(|what| &what[..6]).collect();
    assert_eq!(evicted, ["50: n1", "60: n2", "70: n3"]);
    let kept_off = fixture
        .done
        .iter()
        .filter(|what| what.ends_with("NoSchedule"));
    assert_eq!(kept_off.count(), 2, "at once, for the two that wait");
}

#[test]
fn an_unhealthy_small_zone_is_not_evicted_from() {
    let mut fixture = Fixture::with(10);
    fixture.run_with(1_000, &["n7", "n8", "n9", "n10"]);
    let of = |what: &str| {
        fixture
            .done
            .iter()
            .filter(|done| done.contains(what))
            .count()
    };
    assert_eq!(of("unknown"), 6);
    assert_eq!(of("unreachable:NoSchedule"), 6);
    assert_eq!(of("NoExecute"), 0);
}

#[test]
fn when_all_nodes_fail_taints_are_removed_and_grace_periods_restart_afterwards() {
    let mut fixture = Fixture::with(3);
    fixture.run_with(100, &["n2", "n3"]);
    assert!(fixture.done.contains(&format!("50: n1 tainted {BOTH}")));
    fixture.done.clear();
    fixture.run(150);
    fixture.check(&[
        "150: n1 tainted unreachable:NoSchedule",
        "150: n2 unknown",
        "150: n3 unknown",
        "150: n2 NotReady",
        "150: n3 NotReady",
        "150: n2 tainted unreachable:NoSchedule",
        "150: n3 tainted unreachable:NoSchedule",
    ]);
    fixture.run(1_000);
    fixture.report("n2", ConditionStatus::True);
    fixture.run_with(1_009, &["n2"]);
    fixture.check(&["1000: n2 tainted"]);
    fixture.run_with(1_100, &["n2"]);
    let tainted = |second: u64, name: &str| format!("{second}: {name} tainted {BOTH}");
    fixture.check(&[&tainted(1_010, "n1"), &tainted(1_020, "n3")]);
}

#[test]
fn a_node_that_flaps_is_tainted_and_cleared_each_time() {
    let mut fixture = Fixture::with(2);
    for round in 0..3 {
        let begin = round * 100;
        fixture.run_with(begin + 60, &["n2"]);
        fixture.report("n1", ConditionStatus::True);
        fixture.run_with(begin + 100, &["n1", "n2"]);
    }
    let of = |what: &str| {
        fixture
            .done
            .iter()
            .filter(|done| done.ends_with(what))
            .count()
    };
    assert_eq!((of("n1 unknown"), of(BOTH), of("n1 tainted")), (3, 3, 3));
    assert_eq!(fixture.done.len(), 4 * 3);
}

#[test]
fn no_decision_is_made_from_a_version_older_than_the_last_write() {
    let mut monitor = Monitor::new(Settings::default());
    let mut fixture = Fixture::with(1);
    fixture.nodes.get_mut("n1").unwrap().unschedulable = true;
    let mut facts = fixture.nodes["n1"].clone();
    facts.version = "10".into();
    monitor.on_synced(Monotonic::START);
    monitor.on_node(Monotonic::START, facts.clone());
    let actions = monitor.take_actions(Monotonic::START);
    assert!(
        matches!(actions[1], Action::SetTaints { .. }),
        "{actions:?}"
    );
    monitor.on_written("n1", "n1", &"12".into());
    facts.version = "11".into();
    monitor.on_node(Monotonic::START, facts.clone());
    assert_eq!(monitor.take_actions(Monotonic::START), []);
    facts.version = "12".into();
    facts.taints.clear();
    monitor.on_node(Monotonic::START, facts.clone());
    let actions = monitor.take_actions(Monotonic::START);
    assert!(
        matches!(&actions[..], [Action::SetTaints { .. }]),
        "somebody took it away: {actions:?}"
    );
    monitor.retry_node("n1", "n1");
    let actions = monitor.take_actions(Monotonic::START);
    assert!(
        matches!(&actions[..], [Action::SetTaints { .. }]),
        "a conflict: {actions:?}"
    );
    monitor.retry_node("n1", "another");
    assert_eq!(monitor.take_actions(Monotonic::START), []);
}

#[test]
fn a_deleted_node_is_removed() {
    let mut fixture = Fixture::with(1);
    fixture.monitor.on_node_deleted("n1");
    fixture.run(1_000);
    fixture.check(&["0: n1 Removed"]);
    assert!(fixture.monitor.deadlines.is_empty());
    assert_eq!(fixture.monitor.next_deadline(), None);
}

#[test]
fn heartbeats_add_no_queue_entries() {
    let mut fixture = Fixture::with(1);
    for second in 1..2_000 {
        fixture.run(second);
        fixture.renew("n1", i64::try_from(second).unwrap());
        assert_eq!(fixture.monitor.deadlines.len(), 1);
    }
    fixture.check(&[]);
}

#[test]
fn a_queued_node_that_moves_to_another_zone_is_queued_there() {
    let mut fixture = Fixture::with(5);
    let zone = |fixture: &mut Fixture, name: &str, zone: &str| {
        fixture.nodes.get_mut(name).unwrap().zone = zone.into();
        fixture.changed(name);
    };
    zone(&mut fixture, "n1", "a");
    zone(&mut fixture, "n2", "a");
    let living = ["n3", "n4", "n5"];
    fixture.run_with(52, &living);
    let tainted = format!("n2 tainted {BOTH}");
    assert!(!fixture.done.join(" ").contains(&tainted), "n1 is first");
    fixture.monitor.on_node_deleted("n1");
    zone(&mut fixture, "n2", "");
    fixture.run_with(70, &living);
    assert!(
        fixture.done.join(" ").contains(&tainted),
        "{:?}",
        fixture.done
    );
}

#[test]
fn after_an_outage_grace_periods_restart() {
    let mut fixture = Fixture::with(2);
    fixture.now = 45;
    let now = fixture.time();
    fixture.monitor.restart_grace_periods(now);
    fixture.run(94);
    assert_eq!(fixture.done, [""; 0]);
    fixture.run(96);
    assert!(
        fixture.done.join(" ").contains("n1 unknown"),
        "{:?}",
        fixture.done
    );
}

#[test]
fn pods_are_marked_even_if_the_response_got_lost() {
    let mut fixture = Fixture::with(2);
    fixture.pod("p", "n1", true);
    fixture.now = 50;
    fixture.renew("n2", 1);
    let now = fixture.time();
    let actions = fixture.monitor.take_actions(now);
    assert!(
        matches!(actions[..], [Action::SetUnknown { .. }]),
        "{actions:?}"
    );
    let node = fixture.nodes.get_mut("n1").unwrap();
    node.conditions
        .set(&ConditionType::Ready, ConditionStatus::Unknown);
    fixture.changed("n1");
    fixture.monitor.retry_node("n1", "n1");
    let actions = fixture.monitor.take_actions(now);
    let marked = |action: &&Action| matches!(action, Action::MarkNotReady(_));
    assert_eq!(actions.iter().filter(marked).count(), 1, "{actions:?}");
    fixture.monitor.retry_node("n1", "n1");
    let actions = fixture.monitor.take_actions(now);
    assert_eq!(actions.iter().filter(marked).count(), 0, "{actions:?}");
}
