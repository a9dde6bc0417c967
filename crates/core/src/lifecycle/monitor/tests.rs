//! The monitor in worlds of a few nodes, second by second.

use super::*;
use crate::lifecycle::NodeTaint;
use crate::lifecycle::conditions::{Conditions, Kind};

/// A monitor, and the API that it writes to: writes are carried out at once.
struct World {
    monitor: Monitor,
    nodes: BTreeMap<String, NodeFacts>,
    version: u64,
    now: u64,
    /// What was done, as `second: what`.
    done: Vec<String>,
}

impl World {
    fn new() -> Self {
        Self {
            monitor: Monitor::new(Settings::default()),
            nodes: BTreeMap::new(),
            version: 1,
            now: 0,
            done: Vec::new(),
        }
    }

    /// With so many ready nodes, `n1` and on, all of which have just been heard of.
    fn with(count: usize) -> Self {
        let mut world = Self::new();
        for number in 1..=count {
            world.report(&format!("n{number}"), Says::True);
        }
        world.monitor.synced(world.time());
        world.run(0);
        world.done.clear();
        world
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.now)
    }

    /// A node says how it is.
    fn report(&mut self, name: &str, ready: Says) {
        let heartbeat = i64::try_from(self.now).unwrap();
        let node = self.nodes.entry(name.to_owned()).or_insert(NodeFacts {
            name: name.into(),
            uid: name.into(),
            version: "0".into(),
            created: Some(0),
            zone: "".into(),
            excluded: false,
            conditions: Conditions::default(),
            heartbeat: None,
            unschedulable: false,
            taints: Vec::new(),
        });
        node.conditions.set(Kind::Ready, ready);
        node.heartbeat = Some(heartbeat);
        self.changed(name);
    }

    /// A node's facts have a new version, which the monitor sees.
    fn changed(&mut self, name: &str) {
        self.version += 1;
        let node = self.nodes.get_mut(name).unwrap();
        node.version = self.version.to_string().into();
        let facts = node.clone();
        self.monitor.node(self.time(), facts);
    }

    fn renew(&mut self, name: &str, renewed: i64) {
        self.monitor.lease(self.time(), name, Some(renewed));
    }

    fn pod(&mut self, name: &str, node: &str, ready: bool) {
        let pod = Resident {
            node: node.into(),
            namespace: "ns".into(),
            name: name.into(),
            kept: ready,
        };
        self.monitor.pod(&name.into(), pod);
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
            let actions = self.monitor.take(self.time());
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
                for silence in conditions {
                    of.conditions.set(silence.kind, Says::Unknown);
                }
                (format!("{} unknown", node.name), Some(node.name))
            }
            Action::SetTaints { node, change } => {
                let of = self.nodes.get_mut(&*node.name).unwrap();
                assert_eq!(of.version, node.version, "the newest is known");
                let add = change.add.into_iter().map(|taint| NodeTaint {
                    taint,
                    added: Some(0),
                });
                of.taints = change.keep.into_iter().chain(add).collect();
                let taints = of.taints.iter().map(|found| {
                    let key = found.taint.key.replace("node.kubernetes.io/", "");
                    format!(" {key}:{}", found.taint.effect)
                });
                let taints: String = taints.collect();
                (format!("{} tainted{taints}", node.name), Some(node.name))
            }
            Action::MarkNotReady(pod) => (format!("pod {} not ready", pod.name), None),
            Action::Tell { name, news, .. } => (format!("{name} {news:?}"), None),
        };
        self.done.push(format!("{}: {what}", self.now));
        if let Some(name) = wrote {
            self.changed(&name);
            let version = self.nodes[&*name].version.clone();
            self.monitor.wrote(&name, &name, &version);
        }
    }

    /// What was done since the last look.
    fn check(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.done), expected);
    }
}

const BOTH: &str = "unreachable:NoSchedule unreachable:NoExecute";

#[test]
fn a_silent_node_is_unknown_after_its_grace_and_its_pods_are_not_ready() {
    let mut world = World::with(2);
    world.pod("ready", "n1", true);
    world.pod("waiting", "n1", false);
    world.pod("elsewhere", "n2", true);
    world.run_with(49, &["n2"]);
    world.check(&[]);
    world.run_with(200, &["n2"]);
    world.check(&[
        "50: n1 unknown",
        "50: n1 NotReady",
        "50: pod ready not ready",
        &format!("50: n1 tainted {BOTH}"),
    ]);
}

#[test]
fn a_node_that_comes_back_loses_its_taints() {
    let mut world = World::with(2);
    world.run_with(60, &["n2"]);
    world.done.clear();
    world.renew("n1", 1);
    world.run_with(70, &["n1", "n2"]);
    world.check(&[]);
    world.report("n1", Says::True);
    world.run_with(200, &["n1", "n2"]);
    world.check(&["70: n1 tainted"]);
}

#[test]
fn a_node_that_says_it_is_not_ready_is_tainted_at_once() {
    let mut world = World::with(2);
    world.pod("p", "n1", true);
    world.report("n1", Says::False);
    world.run_with(100, &["n1", "n2"]);
    world.check(&["0: n1 tainted not-ready:NoSchedule not-ready:NoExecute"]);
    world.run_with(200, &["n2"]);
    world.check(&["150: n1 unknown", &format!("150: n1 tainted {BOTH}")]);
}

#[test]
fn only_changes_of_a_lease_count_whatever_time_it_tells() {
    let mut world = World::with(2);
    for (second, renewed) in [(10, 5_000), (20, 4_000), (30, -3), (40, -3), (60, -3)] {
        world.run_with(second, &["n2"]);
        world.renew("n1", renewed);
    }
    world.run_with(79, &["n2"]);
    world.check(&[]);
    world.run_with(80, &["n2"]);
    assert_eq!(world.done[0], "80: n1 unknown");
}

#[test]
fn a_status_that_a_node_reports_is_a_sign_of_life_too() {
    let mut world = World::with(2);
    world.run_with(40, &["n2"]);
    world.report("n1", Says::True);
    world.run_with(70, &["n2"]);
    world.nodes.get_mut("n1").unwrap().unschedulable = true;
    world.changed("n1");
    world.run_with(89, &["n2"]);
    world.check(&["70: n1 tainted unschedulable:NoSchedule"]);
    world.run_with(90, &["n2"]);
    assert_eq!(world.done[0], "90: n1 unknown");
}

#[test]
fn a_node_that_never_says_anything_gets_a_minute() {
    let mut world = World::with(1);
    let silent = NodeFacts {
        name: "n2".into(),
        uid: "n2".into(),
        conditions: Conditions::default(),
        heartbeat: None,
        ..world.nodes["n1"].clone()
    };
    world.nodes.insert("n2".to_owned(), silent);
    world.changed("n2");
    world.run_with(59, &["n1"]);
    world.check(&["0: n2 Registered"]);
    world.run_with(100, &["n1"]);
    let tainted = format!("60: n2 tainted {BOTH}");
    world.check(&["60: n2 unknown", &tainted]);
}

#[test]
fn a_node_that_speaks_up_is_held_to_the_shorter_grace() {
    let mut world = World::with(1);
    let new = NodeFacts {
        name: "n2".into(),
        uid: "n2".into(),
        conditions: Conditions::default(),
        heartbeat: None,
        ..world.nodes["n1"].clone()
    };
    world.nodes.insert("n2".to_owned(), new);
    world.changed("n2");
    world.run_with(5, &["n1"]);
    world.report("n2", Says::True);
    world.run_with(54, &["n1"]);
    world.check(&["0: n2 Registered"]);
    world.run_with(55, &["n1"]);
    assert_eq!(world.done[0], "55: n2 unknown");
}

#[test]
fn after_a_start_everybody_has_the_full_grace_and_pods_are_marked_that_were_not() {
    let mut world = World::new();
    world.now = 1_000;
    world.report("n1", Says::True);
    world.report("n2", Says::Unknown);
    world.pod("p", "n2", true);
    world.run_with(1_100, &[]);
    world.check(&["1000: n1 Registered", "1000: n2 Registered"]);
    world.monitor.synced(world.time());
    world.act();
    assert_eq!(world.done[0], "1100: pod p not ready");
    world.run_with(1_200, &[]);
    assert!(world.done.contains(&"1150: n1 unknown".to_owned()));
}

#[test]
fn pods_that_come_to_a_node_that_is_not_ready_are_not_ready() {
    let mut world = World::with(2);
    world.report("n1", Says::False);
    world.act();
    world.done.clear();
    world.pod("early", "n1", false);
    world.pod("early", "n1", true);
    world.pod("moved", "n2", true);
    world.pod("moved", "n1", true);
    world.act();
    world.check(&["0: pod moved not ready"]);
    world.monitor.pod_again(&"moved".into());
    world.act();
    world.check(&["0: pod moved not ready"]);
    world.report("n1", Says::True);
    world.monitor.pod_again(&"moved".into());
    world.act();
    world.check(&["0: n1 tainted"]);
}

#[test]
fn nodes_that_fail_together_are_tainted_one_by_one() {
    let mut world = World::with(10);
    let living = ["n4", "n5", "n6", "n7", "n8", "n9", "n10"];
    world.run_with(100, &living);
    let evicted = world.done.iter().filter(|what| what.contains("NoExecute"));
    let evicted: Vec<_> = evicted.map(|what| &what[..6]).collect();
    assert_eq!(evicted, ["50: n1", "60: n2", "70: n3"]);
    let kept_off = world
        .done
        .iter()
        .filter(|what| what.ends_with("NoSchedule"));
    assert_eq!(kept_off.count(), 2, "at once, for the two that wait");
}

#[test]
fn when_most_of_a_small_zone_is_silent_nobody_is_driven_off() {
    let mut world = World::with(10);
    world.run_with(1_000, &["n7", "n8", "n9", "n10"]);
    let of = |what: &str| world.done.iter().filter(|done| done.contains(what)).count();
    assert_eq!(of("unknown"), 6);
    assert_eq!(of("unreachable:NoSchedule"), 6);
    assert_eq!(of("NoExecute"), 0);
}

#[test]
fn when_all_are_silent_taints_go_and_after_it_all_have_a_full_grace() {
    let mut world = World::with(3);
    world.run_with(100, &["n2", "n3"]);
    assert!(world.done.contains(&format!("50: n1 tainted {BOTH}")));
    world.done.clear();
    world.run(150);
    world.check(&[
        "150: n1 tainted unreachable:NoSchedule",
        "150: n2 unknown",
        "150: n3 unknown",
        "150: n2 NotReady",
        "150: n3 NotReady",
        "150: n2 tainted unreachable:NoSchedule",
        "150: n3 tainted unreachable:NoSchedule",
    ]);
    world.run(1_000);
    world.report("n2", Says::True);
    world.run_with(1_009, &["n2"]);
    world.check(&["1000: n2 tainted"]);
    world.run_with(1_100, &["n2"]);
    let tainted = |second: u64, name: &str| format!("{second}: {name} tainted {BOTH}");
    world.check(&[&tainted(1_010, "n1"), &tainted(1_020, "n3")]);
}

#[test]
fn a_node_that_flaps_is_tainted_and_cleared_each_time() {
    let mut world = World::with(2);
    for round in 0..3 {
        let begin = round * 100;
        world.run_with(begin + 60, &["n2"]);
        world.report("n1", Says::True);
        world.run_with(begin + 100, &["n1", "n2"]);
    }
    let of = |what: &str| {
        world
            .done
            .iter()
            .filter(|done| done.ends_with(what))
            .count()
    };
    assert_eq!((of("n1 unknown"), of(BOTH), of("n1 tainted")), (3, 3, 3));
    assert_eq!(world.done.len(), 4 * 3);
}

#[test]
fn nothing_is_decided_from_what_is_older_than_our_own_write() {
    let mut monitor = Monitor::new(Settings::default());
    let mut world = World::with(1);
    world.nodes.get_mut("n1").unwrap().unschedulable = true;
    let mut facts = world.nodes["n1"].clone();
    facts.version = "10".into();
    monitor.synced(Duration::ZERO);
    monitor.node(Duration::ZERO, facts.clone());
    let actions = monitor.take(Duration::ZERO);
    assert!(
        matches!(actions[1], Action::SetTaints { .. }),
        "{actions:?}"
    );
    monitor.wrote("n1", "n1", &"12".into());
    facts.version = "11".into();
    monitor.node(Duration::ZERO, facts.clone());
    assert_eq!(monitor.take(Duration::ZERO), []);
    facts.version = "12".into();
    facts.taints.clear();
    monitor.node(Duration::ZERO, facts.clone());
    let actions = monitor.take(Duration::ZERO);
    assert!(
        matches!(&actions[..], [Action::SetTaints { .. }]),
        "somebody took it away: {actions:?}"
    );
    monitor.again("n1", "n1");
    let actions = monitor.take(Duration::ZERO);
    assert!(
        matches!(&actions[..], [Action::SetTaints { .. }]),
        "a conflict: {actions:?}"
    );
    monitor.again("n1", "another");
    assert_eq!(monitor.take(Duration::ZERO), []);
}

#[test]
fn a_node_that_is_gone_is_forgotten() {
    let mut world = World::with(1);
    world.monitor.node_gone("n1");
    world.run(1_000);
    world.check(&["0: n1 Removed"]);
    assert!(world.monitor.deadlines.is_empty());
    assert_eq!(world.monitor.next_deadline(), None);
}

#[test]
fn signs_of_life_cost_no_entry_in_the_queue() {
    let mut world = World::with(1);
    for second in 1..2_000 {
        world.run(second);
        world.renew("n1", i64::try_from(second).unwrap());
        assert_eq!(world.monitor.deadlines.len(), 1);
    }
    world.check(&[]);
}

#[test]
fn who_waits_for_its_turn_and_moves_to_another_zone_gets_it_there() {
    let mut world = World::with(5);
    let zone = |world: &mut World, name: &str, zone: &str| {
        world.nodes.get_mut(name).unwrap().zone = zone.into();
        world.changed(name);
    };
    zone(&mut world, "n1", "a");
    zone(&mut world, "n2", "a");
    let living = ["n3", "n4", "n5"];
    world.run_with(52, &living);
    let tainted = format!("n2 tainted {BOTH}");
    assert!(!world.done.join(" ").contains(&tainted), "n1 is first");
    world.monitor.node_gone("n1");
    zone(&mut world, "n2", "");
    world.run_with(70, &living);
    assert!(world.done.join(" ").contains(&tainted), "{:?}", world.done);
}

#[test]
fn nodes_that_could_not_be_heard_get_their_full_time_again() {
    let mut world = World::with(2);
    world.now = 45;
    let now = world.time();
    world.monitor.was_deaf(now);
    world.run(94);
    assert_eq!(world.done, [""; 0]);
    world.run(96);
    assert!(
        world.done.join(" ").contains("n1 unknown"),
        "{:?}",
        world.done
    );
}

#[test]
fn pods_are_marked_though_the_answer_got_lost() {
    let mut world = World::with(2);
    world.pod("p", "n1", true);
    world.now = 50;
    world.renew("n2", 1);
    let now = world.time();
    let actions = world.monitor.take(now);
    assert!(
        matches!(actions[..], [Action::SetUnknown { .. }]),
        "{actions:?}"
    );
    let node = world.nodes.get_mut("n1").unwrap();
    node.conditions.set(Kind::Ready, Says::Unknown);
    world.changed("n1");
    world.monitor.again("n1", "n1");
    let actions = world.monitor.take(now);
    let marked = |action: &&Action| matches!(action, Action::MarkNotReady(_));
    assert_eq!(actions.iter().filter(marked).count(), 1, "{actions:?}");
    world.monitor.again("n1", "n1");
    let actions = world.monitor.take(now);
    assert_eq!(actions.iter().filter(marked).count(), 0, "{actions:?}");
}
