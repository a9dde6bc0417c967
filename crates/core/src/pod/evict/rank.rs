//! Who has to go first: whoever uses more than he asked for, then who matters less, then who uses most.

use std::cmp::Reverse;

use serde_json::Value;

use super::Signal;
use crate::quantity::Quantity;

/// From this priority on a pod is never evicted by its node.
const CRITICAL: i64 = 2_000_000_000;

/// A pod that runs, and what it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its uid.
    pub uid: String,
    /// Its priority.
    pub priority: i64,
    /// It must stay, whatever happens.
    pub critical: bool,
    /// What it asked for.
    pub requests: Requests,
    /// What its containers use; none if that is not known.
    pub containers: Option<Vec<ContainerUse>>,
    /// What its volumes take, in bytes.
    pub volumes: u64,
    /// How many files it has.
    pub inodes: u64,
}

/// What a pod asked for, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Memory.
    pub memory: u64,
    /// Room on disks.
    pub storage: u64,
}

/// What a container uses, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerUse {
    /// Its name.
    pub name: String,
    /// Memory.
    pub memory: u64,
    /// What it has written into its own layer.
    pub layer: u64,
    /// Its logs.
    pub logs: u64,
}

impl Candidate {
    /// Reads a pod; what it uses is filled in by whoever has measured it.
    pub fn read(pod: &Value, is_static: bool) -> Self {
        let spec = &pod["spec"];
        let request = |name: &str| {
            let all = spec["containers"].as_array().into_iter().flatten();
            let sum: Quantity = all
                .map(|container| Quantity::read(&container["resources"]["requests"][name]))
                .fold(Quantity::ZERO, |sum, one| sum + one);
            let whole = &spec["resources"]["requests"][name];
            let asked = if whole.is_null() {
                sum
            } else {
                Quantity::read(whole)
            };
            u64::try_from(asked.value()).unwrap_or(0)
        };
        Self {
            uid: pod["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            priority: spec["priority"].as_i64().unwrap_or(0),
            critical: is_critical(pod, is_static),
            requests: Requests {
                memory: request("memory"),
                storage: request("ephemeral-storage"),
            },
            ..Self::default()
        }
    }

    /// What it uses of what a signal is about, and what it asked for of that.
    fn use_of(&self, signal: Signal) -> Option<(u64, u64)> {
        let containers = self.containers.as_ref()?;
        let sum = |of: fn(&ContainerUse) -> u64| containers.iter().map(of).sum::<u64>();
        Some(match signal {
            Signal::Memory => (sum(|c| c.memory), self.requests.memory),
            Signal::NodeDisk | Signal::ImageDisk => {
                let used = sum(|c| c.layer + c.logs) + self.volumes;
                (used, self.requests.storage)
            }
            Signal::NodeInodes | Signal::ImageInodes => (self.inodes, 0),
            Signal::Pids => (0, 0),
        })
    }
}

/// A pod that keeps its machine or cluster alive: it came with the machine, or its priority says so.
pub fn is_critical(pod: &Value, is_static: bool) -> bool {
    is_static || pod["spec"]["priority"].as_i64() >= Some(CRITICAL)
}

/// Puts pods in the order in which they are evicted when this runs short. A pod of which nothing is known goes
/// first; those that must stay are left out.
pub fn rank(signal: Signal, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut ranked = candidates;
    ranked.retain(|candidate| !candidate.critical);
    ranked.sort_by_key(|candidate| {
        let Some((used, asked)) = candidate.use_of(signal) else {
            return (0, 0, candidate.priority, Reverse(0));
        };
        let within = signal != Signal::Pids && used <= asked;
        let over = i128::from(used) - i128::from(asked);
        (1, u8::from(within), candidate.priority, Reverse(over))
    });
    ranked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `uid priority request used`, in mebibytes.
    fn candidate(text: &str) -> Candidate {
        let words: Vec<&str> = text.split(' ').collect();
        let pod = json!({"metadata": {"uid": words[0]}, "spec": {
            "priority": words[1].parse::<i64>().unwrap(),
            "containers": [{"resources": {"requests": {
                "memory": format!("{}Mi", words[2]), "ephemeral-storage": format!("{}Mi", words[2])}}}]}});
        let mut candidate = Candidate::read(&pod, false);
        candidate.containers = words.get(3).map(|used| {
            let used = used.parse::<u64>().unwrap() << 20;
            vec![ContainerUse {
                memory: used,
                layer: used,
                ..ContainerUse::default()
            }]
        });
        candidate
    }

    fn check(signal: Signal, pods: &[&str], expected: &[&str]) {
        let candidates = pods.iter().map(|text| candidate(text)).collect();
        let ranked = rank(signal, candidates);
        let uids: Vec<&str> = ranked.iter().map(|pod| pod.uid.as_str()).collect();
        assert_eq!(uids, expected, "{signal}");
    }

    #[test]
    fn whoever_uses_more_than_asked_for_goes_first() {
        for signal in [Signal::Memory, Signal::NodeDisk] {
            check(
                signal,
                &["within 0 100 99", "over 1000 10 11"],
                &["over", "within"],
            );
            check(signal, &["high 10 0 50", "low 5 0 1"], &["low", "high"]);
            check(
                signal,
                &["little 0 10 20", "much 0 100 200"],
                &["much", "little"],
            );
            check(
                signal,
                &["small 0 100 90", "near 0 100 99"],
                &["near", "small"],
            );
            check(
                signal,
                &["known 0 0 9999", "unknown 100 0"],
                &["unknown", "known"],
            );
        }
    }

    #[test]
    fn critical_pods_stay() {
        check(
            Signal::Memory,
            &["a 2000001000 0 999", "b 1999999999 0 1"],
            &["b"],
        );
        let daemon = json!({"spec": {"containers": []}});
        assert!(is_critical(&daemon, true));
        assert!(!is_critical(&daemon, false));
    }

    #[test]
    fn for_processes_only_priority_counts() {
        check(Signal::Pids, &["a 10 0 999", "b 5 0 1"], &["b", "a"]);
    }
}
