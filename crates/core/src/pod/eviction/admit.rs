//! Which pods a node under pressure still admits.

use kennel_types::ConditionType;
use serde_json::Value;

use super::{Pressures, evicted, is_critical};
use crate::daemonset::fit::parse_tolerations;
use crate::pod::qos::{self, Class};
use crate::pod::status::PodFailure;
use crate::taint::{Taint, TaintEffect};

/// The rejection of a pod, or nothing when a node under these pressures admits it. Under memory pressure alone, pods
/// that are not best-effort or that tolerate it are admitted; under any other pressure, only critical pods.
pub fn reject_under_pressure(
    pod: &Value,
    is_static: bool,
    pressures: Pressures,
) -> Option<PodFailure> {
    if pressures == Pressures::default() || is_critical(pod, is_static) {
        return None;
    }
    let only_memory = pressures.memory && !pressures.disk && !pressures.pids;
    if only_memory
        && (qos::class(&pod["spec"]) != Class::BestEffort || tolerates_memory_pressure(pod))
    {
        return None;
    }
    let all = [
        (pressures.memory, ConditionType::MemoryPressure),
        (pressures.disk, ConditionType::DiskPressure),
        (pressures.pids, ConditionType::PidPressure),
    ];
    let active = all.iter().filter(|(is_active, _)| *is_active);
    let named = active.map(|(_, condition)| condition.as_str());
    let named = named.collect::<Vec<_>>().join(" ");
    Some(evicted(format!(
        "Pod was rejected: The node had condition: [{named}]. "
    )))
}

fn tolerates_memory_pressure(pod: &Value) -> bool {
    let taint = Taint::new(
        "node.kubernetes.io/memory-pressure",
        TaintEffect::NoSchedule,
    );
    let mut tolerations = parse_tolerations(&pod["spec"]["tolerations"]).into_iter();
    tolerations.any(|toleration| toleration.tolerates(&taint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MEMORY: Pressures = Pressures {
        memory: true,
        disk: false,
        pids: false,
    };
    const BOTH: Pressures = Pressures {
        disk: true,
        ..MEMORY
    };

    fn check(spec: &Value, pressures: Pressures, expected: &str) {
        let failure = reject_under_pressure(&json!({"spec": spec}), false, pressures);
        let message = failure.map(|failure| failure.message).unwrap_or_default();
        assert_eq!(message, expected, "{spec}");
    }

    #[test]
    fn best_effort_pods_are_rejected_under_memory_pressure() {
        let burstable = json!({"containers": [{"resources": {"requests": {"memory": "1Mi"}}}]});
        let best_effort = json!({"containers": [{}]});
        let tolerant = json!({"containers": [{}], "tolerations": [
            {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]});
        let critical = json!({"containers": [{}], "priority": 2_000_001_000});
        check(&best_effort, Pressures::default(), "");
        check(
            &best_effort,
            MEMORY,
            "Pod was rejected: The node had condition: [MemoryPressure]. ",
        );
        check(&burstable, MEMORY, "");
        check(&tolerant, MEMORY, "");
        let both = "Pod was rejected: The node had condition: [MemoryPressure DiskPressure]. ";
        check(&burstable, BOTH, both);
        check(&tolerant, BOTH, both);
        check(&critical, BOTH, "");
    }
}
