//! The order of eviction: pods that exceed their requests first, then by priority, then by usage above requests.

use std::cmp::Reverse;

use serde_json::Value;

use super::Signal;
use crate::quantity::Quantity;

/// The node never evicts pods of this priority or a higher one.
const CRITICAL: i64 = 2_000_000_000;

/// A running pod and its usage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    pub uid: String,
    pub priority: i64,
    /// Never evicted.
    pub critical: bool,
    pub requests: Requests,
    /// None if the usage is unknown.
    pub containers: Option<Vec<ContainerUsage>>,
    /// Bytes in its volumes.
    pub volumes: u64,
    /// Inodes in its volumes and layers.
    pub inodes: u64,
}

/// In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub memory: u64,
    /// `ephemeral-storage`.
    pub storage: u64,
}

/// In bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerUsage {
    pub name: String,
    pub memory: u64,
    /// Its writable layer.
    pub layer: u64,
    pub logs: u64,
}

impl Candidate {
    /// Reads everything except the usage, which the caller fills in.
    pub fn read(pod: &Value, is_static: bool) -> Self {
        let spec = &pod["spec"];
        let request = |name: &str| {
            let all = spec["containers"].as_array().into_iter().flatten();
            let sum: Quantity = all
                .map(|container| Quantity::read(&container["resources"]["requests"][name]))
                .fold(Quantity::ZERO, |sum, one| sum + one);
            let whole = &spec["resources"]["requests"][name];
            let requested = if whole.is_null() {
                sum
            } else {
                Quantity::read(whole)
            };
            u64::try_from(requested.value()).unwrap_or(0)
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

    /// Usage and request of the resource of a signal.
    fn usage(&self, signal: Signal) -> Option<(u64, u64)> {
        let containers = self.containers.as_ref()?;
        let sum = |of: fn(&ContainerUsage) -> u64| containers.iter().map(of).sum::<u64>();
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

/// Static pods and pods of a critical priority.
pub fn is_critical(pod: &Value, is_static: bool) -> bool {
    is_static || pod["spec"]["priority"].as_i64() >= Some(CRITICAL)
}

/// Sorts pods into the order of eviction for a signal. A pod of unknown usage comes first; critical pods are left
/// out.
pub fn rank(signal: Signal, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut ranked = candidates;
    ranked.retain(|candidate| !candidate.critical);
    ranked.sort_by_key(|candidate| {
        let Some((used, requested)) = candidate.usage(signal) else {
            return (0, 0, candidate.priority, Reverse(0));
        };
        let within = signal != Signal::Pids && used <= requested;
        let over = i128::from(used) - i128::from(requested);
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
            vec![ContainerUsage {
                memory: used,
                layer: used,
                ..ContainerUsage::default()
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
    fn pods_above_their_requests_are_evicted_first() {
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
    fn critical_pods_are_not_evicted() {
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
