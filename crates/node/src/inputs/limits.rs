//! What a container may use, from what it requests and is limited to.

use kennel_core::pod::qos::{self, Class};
use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::tree::{containers, text};
use crate::pods::Pod;
use crate::runtime::Limits;

const SHARES_PER_CPU: u64 = 1024;
const SHARES_MIN: u64 = 2;
const SHARES_MAX: u64 = 262_144;
/// Microseconds in which a quota is counted.
const PERIOD: u64 = 100_000;
const QUOTA_MIN: u64 = 1_000;

/// Killed last when memory runs out.
const OOM_LAST: i32 = -997;
/// Killed first.
const OOM_FIRST: i32 = 1000;
/// What everything on a node without which it is none has.
const NODE_CRITICAL: &str = "system-node-critical";

/// Of a container of a pod, on a machine with so many bytes of memory.
pub(super) fn of(pod: &Pod, container: &Value, memory: u64) -> Limits {
    let (requests, limits) = ("requests", "limits");
    let cpu = |list| amount(container, list, "cpu").map(milli);
    let limit = cpu(limits).unwrap_or(0);
    // Without a request, a limit is one.
    let request = cpu(requests).filter(|milli| *milli > 0).unwrap_or(limit);
    let whole = pod.raw_spec()["resources"]["limits"]["memory"].clone();
    let own = amount(container, limits, "memory");
    let bytes = own.or_else(|| (!whole.is_null()).then(|| Quantity::read(&whole)));
    Limits {
        cpu_shares: shares(request),
        cpu_period: PERIOD,
        cpu_quota: quota(limit),
        memory: bytes.map_or(0, |bytes| bytes.value().try_into().unwrap_or(0)),
        oom_score_adj: oom_score_adj(pod, container, memory),
    }
}

fn amount(container: &Value, list: &str, name: &str) -> Option<Quantity> {
    let amount = &container["resources"][list][name];
    (!amount.is_null()).then(|| Quantity::read(amount))
}

fn milli(amount: Quantity) -> u64 {
    amount.milli_value().try_into().unwrap_or(0)
}

fn shares(milli: u64) -> u64 {
    (milli.saturating_mul(SHARES_PER_CPU) / 1000).clamp(SHARES_MIN, SHARES_MAX)
}

fn quota(milli: u64) -> i64 {
    match milli {
        0 => 0,
        milli => (milli.saturating_mul(PERIOD) / 1000)
            .max(QUOTA_MIN)
            .try_into()
            .unwrap_or(i64::MAX),
    }
}

fn oom_score_adj(pod: &Pod, container: &Value, capacity: u64) -> i32 {
    let spec = pod.raw_spec();
    if text(spec, "priorityClassName") == NODE_CRITICAL {
        return OOM_LAST;
    }
    match qos::class(spec) {
        Class::Guaranteed => return OOM_LAST,
        Class::BestEffort => return OOM_FIRST,
        Class::Burstable => {}
    }
    let request = |container: &Value| {
        let request = amount(container, "requests", "memory").unwrap_or(Quantity::ZERO);
        i128::from(request.value())
    };
    let score = |request: i128| 1000 - 1000 * request / i128::from(capacity.max(1));
    let mut adjusted = score(request(container));
    if text(container, "restartPolicy") == "Always" {
        // A sidecar lives no shorter than the containers it serves.
        let served = spec["containers"].as_array().into_iter().flatten();
        let served = served.map(|container| score(request(container))).min();
        adjusted = adjusted.min(served.unwrap_or(adjusted));
    }
    let adjusted = adjusted.clamp(3, 999);
    i32::try_from(adjusted).unwrap_or(OOM_FIRST)
}

/// The cgroup of a pod, below that of its class.
pub(super) fn cgroup(pod: &Pod) -> String {
    let class = match qos::class(pod.raw_spec()) {
        Class::Guaranteed => "",
        Class::Burstable => "burstable/",
        Class::BestEffort => "besteffort/",
    };
    format!("/kubepods/{class}pod{}", pod.id.uid)
}

/// How much memory all containers of a pod may use together, if each is limited.
pub(super) fn memory_of_all(spec: &Value) -> Option<u64> {
    let whole = &spec["resources"]["limits"]["memory"];
    if !whole.is_null() {
        return Quantity::read(whole).value().try_into().ok();
    }
    let mut sum = 0_u64;
    for container in containers(spec) {
        let limit = amount(container, "limits", "memory")?.value();
        sum = sum.saturating_add(limit.try_into().unwrap_or(0));
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inputs::testing::pod;

    const GI: u64 = 1 << 30;

    fn limits(resources: &Value) -> Limits {
        let pod = pod(json!({"containers": [{"name": "c", "resources": resources}]}));
        of(&pod, pod.raw_container("c").unwrap(), 4 * GI)
    }

    #[test]
    fn processor_time() {
        let check = |resources: Value, shares, quota| {
            let found = limits(&resources);
            assert_eq!(
                (found.cpu_shares, found.cpu_quota),
                (shares, quota),
                "{resources}"
            );
        };
        check(json!({}), 2, 0);
        check(json!({"requests": {"cpu": "100m"}}), 102, 0);
        check(json!({"limits": {"cpu": "500m"}}), 512, 50_000);
        check(
            json!({"requests": {"cpu": 2}, "limits": {"cpu": 4}}),
            2048,
            400_000,
        );
        check(json!({"limits": {"cpu": "5m"}}), 5, 1_000);
        check(json!({"requests": {"cpu": "1000"}}), 262_144, 0);
    }

    #[test]
    fn memory_and_who_dies_first() {
        let check = |resources: Value, memory, score| {
            let found = limits(&resources);
            assert_eq!(
                (found.memory, found.oom_score_adj),
                (memory, score),
                "{resources}"
            );
        };
        let both = json!({"cpu": "1", "memory": "1Gi"});
        check(json!({}), 0, 1000);
        check(json!({"limits": both, "requests": both}), GI, -997);
        check(json!({"requests": {"memory": "1Gi"}}), 0, 750);
        check(json!({"requests": {"cpu": "1"}}), 0, 999);
        check(json!({"requests": {"memory": "4Gi"}}), 0, 3);
    }

    #[test]
    fn cgroups_by_class() {
        let check = |resources: Value, expected: &str| {
            let pod = pod(json!({"containers": [{"name": "c", "resources": resources}]}));
            assert_eq!(cgroup(&pod), expected);
        };
        let both = json!({"cpu": "1", "memory": "1Gi"});
        check(json!({}), "/kubepods/besteffort/podu1");
        check(
            json!({"requests": {"cpu": "1"}}),
            "/kubepods/burstable/podu1",
        );
        check(json!({"limits": both, "requests": both}), "/kubepods/podu1");
    }
}
