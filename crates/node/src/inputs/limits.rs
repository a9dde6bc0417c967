//! cgroup limits of a container, from its requests and limits.

use kennel_core::pod::qos::{self, Class};
use kennel_core::pod::resources::is_sidecar;
use kennel_core::quantity::Quantity;
use serde_json::Value;

use crate::json::{containers, text};
use crate::pods::Pod;
use crate::runtime::Limits;

const SHARES_PER_CPU: u64 = 1024;
const SHARES_MIN: u64 = 2;
const SHARES_MAX: u64 = 262_144;
/// Of the CPU quota, in microseconds.
const PERIOD: u64 = 100_000;
const QUOTA_MIN: u64 = 1_000;

/// Upstream's values: killed last, and killed first when memory runs out.
const GUARANTEED_OOM_SCORE_ADJ: i32 = -997;
const BEST_EFFORT_OOM_SCORE_ADJ: i32 = 1000;
/// The priority class of pods that a node needs.
const NODE_CRITICAL: &str = "system-node-critical";

/// `memory` is the machine's, in bytes.
pub(super) fn of(pod: &Pod, container: &Value, memory: u64) -> Limits {
    let (requests, limits) = ("requests", "limits");
    let cpu = |list| amount(container, list, "cpu").map(milli);
    let limit = cpu(limits).unwrap_or(0);
    // Without a request, the limit counts as the request.
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
        return GUARANTEED_OOM_SCORE_ADJ;
    }
    match qos::class(spec) {
        Class::Guaranteed => return GUARANTEED_OOM_SCORE_ADJ,
        Class::BestEffort => return BEST_EFFORT_OOM_SCORE_ADJ,
        Class::Burstable => {}
    }
    let request = |container: &Value| {
        let request = amount(container, "requests", "memory").unwrap_or(Quantity::ZERO);
        i128::from(request.value())
    };
    let score = |request: i128| 1000 - 1000 * request / i128::from(capacity.max(1));
    let mut adjusted = score(request(container));
    if is_sidecar(container) {
        // A sidecar is not killed before the main containers.
        let mains = spec["containers"].as_array().into_iter().flatten();
        let mains = mains.map(|container| score(request(container))).min();
        adjusted = adjusted.min(mains.unwrap_or(adjusted));
    }
    let adjusted = adjusted.clamp(3, 999);
    i32::try_from(adjusted).unwrap_or(BEST_EFFORT_OOM_SCORE_ADJ)
}

/// The cgroup of a pod, below that of its `QoS` class.
pub(super) fn cgroup(pod: &Pod) -> String {
    let class = match qos::class(pod.raw_spec()) {
        Class::Guaranteed => "",
        Class::Burstable => "burstable/",
        Class::BestEffort => "besteffort/",
    };
    format!("/kubepods/{class}pod{}", pod.id.uid)
}

/// The memory limit of a pod; none if a container has no limit.
pub(super) fn pod_memory_limit(spec: &Value) -> Option<u64> {
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
    use crate::inputs::tests::fixture::pod;

    const GI: u64 = 1 << 30;

    fn limits(resources: &Value) -> Limits {
        let pod = pod(json!({"containers": [{"name": "c", "resources": resources}]}));
        of(&pod, pod.raw_container("c").unwrap(), 4 * GI)
    }

    #[test]
    fn cpu_shares_and_quotas() {
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
    fn memory_limits_and_oom_scores() {
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
