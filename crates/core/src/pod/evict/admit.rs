//! Who may still come to a machine that is short of something.

use serde::Deserialize as _;
use serde_json::Value;

use super::{EVICTED, Pressures, is_critical};
use crate::pod::qos::{self, Class};
use crate::pod::status::Verdict;
use crate::taint::{NO_SCHEDULE, Taint, Toleration};

/// Why a pod may not run on a machine under pressure, if it may not. Short of memory, it takes those that say
/// what they need; short of anything else, only those that it cannot do without.
pub fn refused(pod: &Value, is_static: bool, pressures: Pressures) -> Option<Verdict> {
    if pressures == Pressures::default() || is_critical(pod, is_static) {
        return None;
    }
    let only_memory = pressures.memory && !pressures.disk && !pressures.pids;
    if only_memory && (qos::class(&pod["spec"]) != Class::BestEffort || puts_up_with_it(pod)) {
        return None;
    }
    let all = [
        (pressures.memory, "MemoryPressure"),
        (pressures.disk, "DiskPressure"),
        (pressures.pids, "PIDPressure"),
    ];
    let named = all.iter().filter(|(is, _)| *is).map(|(_, name)| *name);
    let named = named.collect::<Vec<_>>().join(" ");
    Some(Verdict {
        reason: EVICTED.to_owned(),
        message: format!("Pod was rejected: The node had condition: [{named}]. "),
    })
}

fn puts_up_with_it(pod: &Value) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/memory-pressure".to_owned(),
        value: String::new(),
        effect: NO_SCHEDULE.to_owned(),
    };
    let all = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    all.filter_map(|toleration| Toleration::deserialize(toleration).ok())
        .any(|toleration| toleration.tolerates(&taint))
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
        let verdict = refused(&json!({"spec": spec}), false, pressures);
        let message = verdict.map(|verdict| verdict.message).unwrap_or_default();
        assert_eq!(message, expected, "{spec}");
    }

    #[test]
    fn pods_that_ask_for_nothing_are_refused_when_memory_is_short() {
        let modest = json!({"containers": [{"resources": {"requests": {"memory": "1Mi"}}}]});
        let careless = json!({"containers": [{}]});
        let tolerant = json!({"containers": [{}], "tolerations": [
            {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]});
        let critical = json!({"containers": [{}], "priority": 2_000_001_000});
        check(&careless, Pressures::default(), "");
        check(
            &careless,
            MEMORY,
            "Pod was rejected: The node had condition: [MemoryPressure]. ",
        );
        check(&modest, MEMORY, "");
        check(&tolerant, MEMORY, "");
        let both = "Pod was rejected: The node had condition: [MemoryPressure DiskPressure]. ";
        check(&modest, BOTH, both);
        check(&tolerant, BOTH, both);
        check(&critical, BOTH, "");
    }
}
