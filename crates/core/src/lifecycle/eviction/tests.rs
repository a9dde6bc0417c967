//! Evictions by taints, second by second.

use super::*;

fn taint(text: &str) -> Taint {
    let (key, effect) = text.split_once(':').unwrap();
    Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: effect.to_owned(),
    }
}

/// `key`, or `key=seconds`.
fn toleration(text: &str) -> Toleration {
    let (key, seconds) = text.split_once('=').unwrap_or((text, ""));
    Toleration {
        key: key.to_owned(),
        operator: "Exists".to_owned(),
        effect: NO_EXECUTE.to_owned(),
        toleration_seconds: seconds.parse().ok(),
        ..Toleration::default()
    }
}

struct World(Evictions);

impl World {
    fn new() -> Self {
        Self(Evictions::new())
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn node(&mut self, now: u64, taints: &str) {
        let taints: Vec<Taint> = taints.split_whitespace().map(taint).collect();
        self.0.node(Self::at(now), &"n".into(), &taints);
    }

    fn pod(&mut self, now: u64, name: &str, tolerations: &str) {
        let tolerations: Vec<_> = tolerations.split_whitespace().map(toleration).collect();
        let pod = Resident {
            node: "n".into(),
            namespace: "ns".into(),
            name: name.into(),
            kept: &tolerations[..],
        };
        self.0.pod(Self::at(now), &name.into(), pod);
    }

    /// What there is to do until then: `-a@10` deletes, `+a@10` lets stay.
    fn until(&mut self, seconds: u64) -> String {
        let mut done = Vec::new();
        let mut now = Duration::ZERO;
        loop {
            for action in self.0.take(now) {
                let seconds = now.as_secs();
                done.push(match action {
                    Action::Delete(pod) => format!("-{}@{seconds}", pod.name),
                    Action::Cancelled(pod) => format!("+{}", pod.name),
                });
            }
            match self.0.next_deadline() {
                Some(at) if at <= Self::at(seconds) => now = at,
                _ => return done.join(" "),
            }
        }
    }
}

#[test]
fn a_pod_stays_as_long_as_it_tolerates_each_taint() {
    let check = |taints: &str, tolerations: &str, expected: Option<u64>| {
        let taints: Vec<Taint> = taints.split_whitespace().map(taint).collect();
        let tolerations: Vec<_> = tolerations.split_whitespace().map(toleration).collect();
        let found = patience(&taints, &tolerations);
        assert_eq!(found, expected.map(Duration::from_secs), "{taints:?}");
    };
    check("", "", None);
    check("a:NoExecute", "", Some(0));
    check("a:NoExecute", "a", None);
    check("a:NoExecute", "a=30", Some(30));
    check("a:NoExecute", "a=-5", Some(0));
    check("a:NoExecute b:NoExecute", "a=30", Some(0));
    check("a:NoExecute b:NoExecute", "a=30 b=20", Some(20));
    check("a:NoExecute b:NoExecute", "a=30 b", Some(30));
    check("a:NoExecute", "a=30 a=10", Some(30));
}

#[test]
fn who_does_not_tolerate_a_taint_goes_at_once_and_who_does_later() {
    let mut world = World::new();
    world.pod(0, "none", "");
    world.pod(0, "short", "gone=10");
    world.pod(0, "usual", "gone=300");
    world.pod(0, "daemon", "gone");
    world.node(5, "other:NoSchedule");
    assert_eq!(world.until(1000), "");
    world.node(5, "other:NoSchedule gone:NoExecute");
    assert_eq!(world.until(1000), "-none@5 -short@15 -usual@305");
}

#[test]
fn s3_12_3_daemon_pods_stay_on_nodes_that_are_not_ready_or_unreachable() {
    let mut world = World::new();
    let keys = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    world.pod(0, "daemon", &keys.join(" "));
    for key in keys {
        world.node(0, &format!("{key}:NoExecute"));
        assert_eq!(world.until(1_000_000), "");
    }
}

#[test]
fn a_taint_that_goes_in_time_lets_pods_stay() {
    let mut world = World::new();
    world.pod(0, "a", "gone=300");
    world.node(0, "gone:NoExecute");
    assert_eq!(world.until(299), "");
    world.node(299, "");
    assert_eq!(world.until(1000), "+a");
    world.node(400, "gone:NoExecute");
    assert_eq!(world.until(1000), "-a@700", "the time begins anew");
}

#[test]
fn one_taint_after_the_other_does_not_prolong_a_pods_time() {
    let mut world = World::new();
    world.pod(0, "a", "not-ready=300 unreachable=300 maintenance=10");
    world.node(0, "not-ready:NoExecute");
    world.node(100, "unreachable:NoExecute");
    assert_eq!(world.until(299), "");
    assert_eq!(world.0.next_deadline(), Some(World::at(300)));
    world.node(100, "unreachable:NoExecute maintenance:NoExecute");
    assert_eq!(world.until(1000), "-a@110", "but can shorten it");
}

#[test]
fn who_comes_later_has_its_own_time() {
    let mut world = World::new();
    world.node(0, "gone:NoExecute");
    world.pod(50, "a", "gone=10");
    world.pod(52, "a", "gone=10");
    assert_eq!(world.until(1000), "-a@60");
}

#[test]
fn tolerations_that_are_added_let_a_pod_stay() {
    let mut world = World::new();
    world.node(0, "gone:NoExecute");
    world.pod(0, "a", "gone=10");
    world.pod(5, "a", "gone=10 ");
    world.pod(5, "a", "gone");
    assert_eq!(world.until(1000), "+a");
}

#[test]
fn a_pod_is_deleted_once_and_again_if_that_failed() {
    let mut world = World::new();
    world.node(0, "gone:NoExecute");
    world.pod(0, "a", "");
    assert_eq!(world.until(0), "-a@0");
    world.node(1, "gone:NoExecute other:NoExecute");
    assert_eq!(world.until(10), "");
    world.0.again(World::at(20), &"a".into());
    assert_eq!(world.until(20), "-a@20");
    world.0.pod_gone("a");
    world.0.again(World::at(30), &"a".into());
    assert_eq!(world.until(100), "");
}

#[test]
fn nothing_is_kept_of_pods_that_are_gone() {
    let mut world = World::new();
    world.node(0, "gone:NoExecute");
    for name in ["a", "b"] {
        world.pod(0, name, "gone=10");
    }
    assert_eq!(world.0.shared.len(), 1);
    world.0.pod_gone("a");
    assert_eq!(world.0.shared.len(), 1);
    world.0.pod_gone("b");
    assert!(world.0.shared.is_empty() && world.0.due.is_empty() && world.0.queue.is_empty());
    assert_eq!(world.until(1000), "");
}

#[test]
fn a_node_that_comes_back_under_its_name_without_the_taint_keeps_its_pods() {
    let mut world = World::new();
    world.pod(0, "usual", "gone=300");
    world.node(0, "gone:NoExecute");
    world.0.node_gone("n");
    world.node(20, "");
    assert_eq!(world.until(1000), "+usual");
    world.node(30, "gone:NoExecute");
    world.0.node_gone("n");
    world.node(40, "gone:NoExecute");
    assert_eq!(world.until(1000), "-usual@330");
    world.0.pod_gone("usual");
    assert!(world.0.vanished.is_empty());
}
