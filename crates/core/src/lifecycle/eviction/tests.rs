//! Evictions by `NoExecute` taints, second by second.

use super::*;

fn taint(text: &str) -> Taint {
    let (key, effect) = text.split_once(':').unwrap();
    Taint::new(key, effect)
}

/// `key`, or `key=seconds`.
fn toleration(text: &str) -> Toleration {
    let (key, seconds) = text.split_once('=').unwrap_or((text, ""));
    Toleration {
        key: key.to_owned(),
        operator: "Exists".to_owned(),
        effect: TaintEffect::NoExecute,
        toleration_seconds: seconds.parse().ok(),
        ..Toleration::default()
    }
}

struct Fixture(Evictions);

impl Fixture {
    fn new() -> Self {
        Self(Evictions::default())
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_secs(seconds))
    }

    fn node(&mut self, now: u64, taints: &str) {
        let taints: Vec<Taint> = taints.split_whitespace().map(taint).collect();
        self.0.on_node(Self::at(now), &"n".into(), &taints);
    }

    fn pod(&mut self, now: u64, name: &str, tolerations: &str) {
        let tolerations: Vec<_> = tolerations.split_whitespace().map(toleration).collect();
        let pod = NodePod {
            id: Identity::new("ns", name, name),
            node: "n".into(),
            data: &tolerations[..],
        };
        self.0.on_pod(Self::at(now), pod);
    }

    /// The actions until then: `-a@10` for a deletion, `+a` for a cancelled one.
    fn until(&mut self, seconds: u64) -> String {
        let mut done = Vec::new();
        let mut now = Monotonic::START;
        loop {
            for action in self.0.take_actions(now) {
                let seconds = now.elapsed().as_secs();
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
        let found = toleration_time(&taints, &tolerations);
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
fn pods_without_toleration_are_deleted_at_once_and_others_later() {
    let mut fixture = Fixture::new();
    fixture.pod(0, "none", "");
    fixture.pod(0, "short", "gone=10");
    fixture.pod(0, "usual", "gone=300");
    fixture.pod(0, "daemon", "gone");
    fixture.node(5, "other:NoSchedule");
    assert_eq!(fixture.until(1000), "");
    fixture.node(5, "other:NoSchedule gone:NoExecute");
    assert_eq!(fixture.until(1000), "-none@5 -short@15 -usual@305");
}

#[test]
fn s3_12_3_daemon_pods_stay_on_nodes_that_are_not_ready_or_unreachable() {
    let mut fixture = Fixture::new();
    let keys = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    fixture.pod(0, "daemon", &keys.join(" "));
    for key in keys {
        fixture.node(0, &format!("{key}:NoExecute"));
        assert_eq!(fixture.until(1_000_000), "");
    }
}

#[test]
fn a_taint_that_goes_in_time_lets_pods_stay() {
    let mut fixture = Fixture::new();
    fixture.pod(0, "a", "gone=300");
    fixture.node(0, "gone:NoExecute");
    assert_eq!(fixture.until(299), "");
    fixture.node(299, "");
    assert_eq!(fixture.until(1000), "+a");
    fixture.node(400, "gone:NoExecute");
    assert_eq!(fixture.until(1000), "-a@700", "a new toleration time");
}

#[test]
fn another_taint_does_not_prolong_the_toleration_time() {
    let mut fixture = Fixture::new();
    fixture.pod(0, "a", "not-ready=300 unreachable=300 maintenance=10");
    fixture.node(0, "not-ready:NoExecute");
    fixture.node(100, "unreachable:NoExecute");
    assert_eq!(fixture.until(299), "");
    assert_eq!(fixture.0.next_deadline(), Some(Fixture::at(300)));
    fixture.node(100, "unreachable:NoExecute maintenance:NoExecute");
    assert_eq!(fixture.until(1000), "-a@110", "but can shorten it");
}

#[test]
fn a_later_pod_has_its_own_toleration_time() {
    let mut fixture = Fixture::new();
    fixture.node(0, "gone:NoExecute");
    fixture.pod(50, "a", "gone=10");
    fixture.pod(52, "a", "gone=10");
    assert_eq!(fixture.until(1000), "-a@60");
}

#[test]
fn tolerations_that_are_added_let_a_pod_stay() {
    let mut fixture = Fixture::new();
    fixture.node(0, "gone:NoExecute");
    fixture.pod(0, "a", "gone=10");
    fixture.pod(5, "a", "gone=10 ");
    fixture.pod(5, "a", "gone");
    assert_eq!(fixture.until(1000), "+a");
}

#[test]
fn a_pod_is_deleted_once_and_again_if_that_failed() {
    let mut fixture = Fixture::new();
    fixture.node(0, "gone:NoExecute");
    fixture.pod(0, "a", "");
    assert_eq!(fixture.until(0), "-a@0");
    fixture.node(1, "gone:NoExecute other:NoExecute");
    assert_eq!(fixture.until(10), "");
    fixture.0.retry(Fixture::at(20), &"a".into());
    assert_eq!(fixture.until(20), "-a@20");
    fixture.0.on_pod_deleted("a");
    fixture.0.retry(Fixture::at(30), &"a".into());
    assert_eq!(fixture.until(100), "");
}

#[test]
fn deleted_pods_leave_no_state() {
    let mut fixture = Fixture::new();
    fixture.node(0, "gone:NoExecute");
    for name in ["a", "b"] {
        fixture.pod(0, name, "gone=10");
    }
    assert_eq!(fixture.0.shared.len(), 1);
    fixture.0.on_pod_deleted("a");
    assert_eq!(fixture.0.shared.len(), 1);
    fixture.0.on_pod_deleted("b");
    assert!(fixture.0.shared.is_empty() && fixture.0.due.is_empty() && fixture.0.queue.is_empty());
    assert_eq!(fixture.until(1000), "");
}

#[test]
fn a_node_that_comes_back_under_its_name_without_the_taint_keeps_its_pods() {
    let mut fixture = Fixture::new();
    fixture.pod(0, "usual", "gone=300");
    fixture.node(0, "gone:NoExecute");
    fixture.0.on_node_deleted("n");
    fixture.node(20, "");
    assert_eq!(fixture.until(1000), "+usual");
    fixture.node(30, "gone:NoExecute");
    fixture.0.on_node_deleted("n");
    fixture.node(40, "gone:NoExecute");
    assert_eq!(fixture.until(1000), "-usual@330");
    fixture.0.on_pod_deleted("usual");
    assert!(fixture.0.deleted_nodes.is_empty());
}
