//! The Node object: metadata, status and conditions. Pure; [`super::register`] and [`super::heartbeat`] write it.

use kennel_core::pod::eviction::{Pressures, Signal};
use kennel_types::{Condition, ConditionStatus, ConditionType, version};
use serde_json::{Map, Value, json};

use super::machine::{self, Machine};
use super::settings::Settings;
use crate::json::list;
use crate::network::{self, NetworkState};
use crate::runtime::{About, Health};

/// All conditions, with upstream's reasons and messages; `Ready` is last. That of the network is there only if the agent
/// manages it.
pub fn conditions(
    health: &Health,
    pressures: Pressures,
    network: Option<Condition>,
) -> Vec<Condition> {
    // Reason and message if it holds, then reason and message if it does not.
    let pressure = |r#type, holds: bool, texts: [&str; 4]| Condition {
        r#type,
        status: holds.into(),
        reason: texts[usize::from(!holds) * 2].to_owned(),
        message: texts[usize::from(!holds) * 2 + 1].to_owned(),
        ..Condition::default()
    };
    let network_problem = network.as_ref().filter(|network| network.is_true());
    let ready = ready(
        health,
        network_problem.map(|network| network.message.as_str()),
    );
    let mut all = vec![
        pressure(
            ConditionType::MemoryPressure,
            pressures.memory,
            [
                "KubeletHasInsufficientMemory",
                "kubelet has insufficient memory available",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ],
        ),
        pressure(
            ConditionType::DiskPressure,
            pressures.disk,
            [
                "KubeletHasDiskPressure",
                "kubelet has disk pressure",
                "KubeletHasNoDiskPressure",
                "kubelet has no disk pressure",
            ],
        ),
        pressure(
            ConditionType::PidPressure,
            pressures.pids,
            [
                "KubeletHasInsufficientPID",
                "kubelet has insufficient PID available",
                "KubeletHasSufficientPID",
                "kubelet has sufficient PID available",
            ],
        ),
    ];
    all.extend(network);
    all.push(ready);
    all
}

/// The condition of the pod network, and nothing while the agent manages none: then whoever does writes it. What an agent left
/// that did manage one is cleared. While an agent starts, the stored condition holds: the network stands without an agent, but
/// not after a reboot, which `boot_id` shows.
pub fn network_condition(state: &NetworkState, stored: &Value, boot_id: &str) -> Option<Condition> {
    let ours = || {
        let condition = stored_condition(stored, &ConditionType::NetworkUnavailable)?;
        let reason = condition["reason"].as_str().unwrap_or_default();
        reason
            .starts_with(network::REASON_PREFIX)
            .then_some((condition, reason))
    };
    match state {
        NetworkState::Ready => Some(network_is(
            false,
            "PodNetworkReady",
            "the pod network is ready",
        )),
        NetworkState::Unavailable { reason, message } => Some(network_is(true, reason, message)),
        NetworkState::Starting { required, expected } => {
            let ours = ours().filter(|(_, reason)| *reason != network::REASON_OFF);
            let same_boot = stored["status"]["nodeInfo"]["bootID"] == boot_id;
            match ours {
                Some((condition, reason)) if same_boot => {
                    let message = condition["message"].as_str().unwrap_or_default();
                    let status = condition["status"].as_str().unwrap_or_default();
                    let unavailable = ConditionStatus::from(status) == ConditionStatus::True;
                    Some(network_is(unavailable, reason, message))
                }
                Some(_) => Some(network_starts()),
                None => {
                    let stored = stored_condition(stored, &ConditionType::NetworkUnavailable);
                    let is_first = *expected && stored.is_none();
                    (*required || is_first).then(network_starts)
                }
            }
        }
        NetworkState::Off => {
            let message = "the agent does not manage the pod network";
            ours().map(|_| network_is(false, network::REASON_OFF, message))
        }
    }
}

fn network_is(unavailable: bool, reason: &str, message: &str) -> Condition {
    Condition {
        r#type: ConditionType::NetworkUnavailable,
        status: unavailable.into(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

fn network_starts() -> Condition {
    network_is(true, "PodNetworkStarting", "the agent is setting it up")
}

/// `network` is why the pod network is not ready.
fn ready(health: &Health, network: Option<&str>) -> Condition {
    let network = network.map(|message| format!("pod network not ready: {message}"));
    let messages = [&health.runtime, &health.network, &network]
        .into_iter()
        .flatten();
    let messages: Vec<&str> = messages.map(String::as_str).collect();
    let reason = if messages.is_empty() {
        "KubeletReady"
    } else {
        "KubeletNotReady"
    };
    Condition {
        r#type: ConditionType::Ready,
        status: messages.is_empty().into(),
        reason: reason.to_owned(),
        message: match messages.as_slice() {
            [] => "kubelet is posting ready status".to_owned(),
            [one] => (*one).to_owned(),
            more => format!("[{}]", more.join(", ")),
        },
        ..Condition::default()
    }
}

/// Why the node is not ready, if it is not.
pub fn unready_reason(conditions: &[Condition]) -> Option<&str> {
    let ready = kennel_types::condition::find(conditions, &ConditionType::Ready);
    let unready = ready.filter(|ready| !ready.is_true())?;
    Some(&unready.message)
}

/// The conditions as API objects. A condition keeps its transition time if the stored object has the same status.
pub fn to_api(conditions: &[Condition], stored: &Value, now: &str) -> Vec<Value> {
    let to_api = |condition: &Condition| {
        let status = condition.status.as_str();
        let before = stored_condition(stored, &condition.r#type);
        let since = before.filter(|before| before["status"] == status);
        let since = since.and_then(|before| before["lastTransitionTime"].as_str());
        json!({"type": condition.r#type.as_str(), "status": status, "reason": condition.reason,
            "message": condition.message, "lastHeartbeatTime": now,
            "lastTransitionTime": since.unwrap_or(now)})
    };
    conditions.iter().map(to_api).collect()
}

/// Whether the stored object has these conditions, apart from heartbeat times.
pub fn are_stored(conditions: &[Condition], stored: &Value) -> bool {
    conditions.iter().all(|condition| {
        stored_condition(stored, &condition.r#type).is_some_and(|before| {
            before["status"] == condition.status.as_str()
                && before["reason"] == condition.reason
                && before["message"] == condition.message
        })
    })
}

/// The conditions whose status differs from the stored object's.
pub fn changed<'a>(
    conditions: &'a [Condition],
    stored: &'a Value,
) -> impl Iterator<Item = &'a Condition> {
    conditions.iter().filter(|condition| {
        let before = stored_condition(stored, &condition.r#type);
        before.is_none_or(|before| before["status"] != condition.status.as_str())
    })
}

fn stored_condition<'a>(stored: &'a Value, r#type: &ConditionType) -> Option<&'a Value> {
    let mut all = list(&stored["status"], "conditions").iter();
    all.find(|condition| condition["type"] == r#type.as_str())
}

pub fn labels(settings: &Settings) -> Map<String, Value> {
    let mut labels = Map::new();
    let mut set = |key: &str, value: &str| {
        labels.insert(key.to_owned(), value.into());
    };
    set("kubernetes.io/hostname", &settings.node_name);
    set("kubernetes.io/os", "linux");
    set("kubernetes.io/arch", machine::architecture());
    set("beta.kubernetes.io/os", "linux");
    set("beta.kubernetes.io/arch", machine::architecture());
    for (key, value) in &settings.labels {
        labels.insert(key.clone(), value.as_str().into());
    }
    labels
}

/// The whole object, for registration.
pub fn object(settings: &Settings, labels: &Map<String, Value>, status: &Value) -> Value {
    let mut spec = json!({});
    if !settings.taints.is_empty() {
        spec["taints"] = json!(settings.taints);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": settings.node_name,
            "labels": labels,
            "annotations": settings.annotations,
        },
        "spec": spec,
        "status": status,
    })
}

/// What the hard eviction threshold reserves, and pods therefore cannot use.
fn reserved(settings: &Settings, signal: Signal, capacity: u64) -> u64 {
    let mut all = settings.eviction_hard.iter();
    let threshold = all.find(|threshold| threshold.signal == signal);
    let reserved = threshold.map_or(0, |threshold| threshold.quantity(capacity).value());
    u64::try_from(reserved).unwrap_or(0).min(capacity)
}

/// The status without conditions.
pub fn status(settings: &Settings, machine: &Machine, about: &About) -> Value {
    let memory = machine.memory - reserved(settings, Signal::Memory, machine.memory);
    let disk = machine.disk - reserved(settings, Signal::NodeDisk, machine.disk);
    json!({
        "capacity": resources(settings, machine, machine.memory, machine.disk),
        "allocatable": resources(settings, machine, memory, disk),
        "addresses": addresses(settings),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.listen.port()}},
        "nodeInfo": {
            "architecture": machine::architecture(),
            "operatingSystem": "linux",
            "osImage": machine.os_image,
            "kernelVersion": machine.kernel,
            RUNTIME_VERSION: runtime_version(about),
            "kubeletVersion": version::GIT_VERSION,
            "kubeProxyVersion": "",
            "machineID": machine.machine_id,
            "systemUUID": machine.system_uuid,
            "bootID": machine.boot_id,
        },
    })
}

/// `status.nodeInfo.containerRuntimeVersion`.
pub const RUNTIME_VERSION: &str = "containerRuntimeVersion";

/// The value of [`RUNTIME_VERSION`].
pub fn runtime_version(about: &About) -> String {
    format!("{}://{}", about.name, about.version)
}

fn resources(settings: &Settings, machine: &Machine, memory: u64, disk: u64) -> Value {
    json!({
        "cpu": machine.cpus.to_string(),
        "memory": format!("{}Ki", memory >> 10),
        "ephemeral-storage": format!("{}Ki", disk >> 10),
        "pods": settings.max_pods.to_string(),
    })
}

pub(super) fn addresses(settings: &Settings) -> Vec<Value> {
    let internal = settings.addresses.current();
    let internal = internal.iter();
    let internal =
        internal.map(|address| json!({"type": "InternalIP", "address": address.to_string()}));
    let name = json!({"type": "Hostname", "address": settings.node_name});
    internal.chain([name]).collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    fn healthy() -> Vec<Condition> {
        conditions(&Health::default(), Pressures::default(), None)
    }

    #[test]
    fn the_ready_condition_says_why_not() {
        let check = |runtime: Option<&str>, network: Option<&str>, expected: &str| {
            let health = Health {
                runtime: runtime.map(str::to_owned),
                network: network.map(str::to_owned),
            };
            let ready = ready(&health, None);
            assert_eq!(ready.message, expected);
            let expected = runtime.is_none() && network.is_none();
            assert_eq!(ready.status, ConditionStatus::from(expected));
        };
        check(None, None, "kubelet is posting ready status");
        let down = "container runtime is down: gone";
        check(Some(down), None, down);
        let network = "container runtime network not ready: NetworkReady=false reason:x message:y";
        check(None, Some(network), network);
        check(
            Some(down),
            Some("network"),
            "[container runtime is down: gone, network]",
        );
    }

    #[test]
    fn n1_6_the_network_condition_says_why_and_what_we_left_is_cleared() {
        let waiting = NetworkState::unavailable("WaitingForRange", "no range".to_owned());
        let condition = network_condition(&waiting, &json!({}), "").unwrap();
        assert_eq!(
            (condition.is_true(), &*condition.reason),
            (true, "PodNetworkWaitingForRange")
        );
        let all = conditions(&Health::default(), Pressures::default(), Some(condition));
        assert_eq!(
            unready_reason(&all),
            Some("pod network not ready: no range")
        );
        let stored = json!({"status": {"conditions": to_api(&all, &json!({}), "then")}});
        let left = network_condition(&NetworkState::Off, &stored, "").unwrap();
        assert_eq!((left.is_true(), &*left.reason), (false, "PodNetworkOff"));
        let others = json!({"status": {"conditions": [
            {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"}]}});
        assert_eq!(network_condition(&NetworkState::Off, &others, ""), None);
        assert_eq!(network_condition(&NetworkState::Off, &json!({}), ""), None);
    }

    #[test]
    fn n1_6_the_stored_network_condition_holds_while_an_agent_starts() {
        let check = |stored: Option<(&str, &str)>,
                     required,
                     boot,
                     expected: Option<(bool, &str)>| {
            let conditions: Vec<Value> = stored
                .into_iter()
                .map(|(status, reason)| {
                    json!({"type": "NetworkUnavailable", "status": status, "reason": reason, "message": "why"})
                })
                .collect();
            let stored =
                json!({"status": {"conditions": conditions, "nodeInfo": {"bootID": "first"}}});
            let state = NetworkState::Starting {
                required,
                expected: false,
            };
            let found = network_condition(&state, &stored, boot);
            let found = found.as_ref().map(|one| (one.is_true(), &*one.reason));
            assert_eq!(found, expected, "{stored} {required} {boot}");
        };
        let (ready, starting) = ("PodNetworkReady", "PodNetworkStarting");
        for required in [true, false] {
            check(
                Some(("False", ready)),
                required,
                "first",
                Some((false, ready)),
            );
            let refused = "PodNetworkKernelRefused";
            check(
                Some(("True", refused)),
                required,
                "first",
                Some((true, refused)),
            );
            check(
                Some(("False", ready)),
                required,
                "second",
                Some((true, starting)),
            );
        }
        check(None, true, "first", Some((true, starting)));
        check(None, false, "first", None);
        // Of a CNI daemon, or left to one.
        for reason in ["NoRouteCreated", network::REASON_OFF] {
            check(Some(("False", reason)), false, "second", None);
        }
    }

    #[test]
    fn n1_6_a_new_node_waits_for_the_network_that_nobody_asked_for_and_is_left_to_others() {
        let starting = NetworkState::Starting {
            required: false,
            expected: true,
        };
        let condition = network_condition(&starting, &json!({}), "first").unwrap();
        assert_eq!(
            (condition.is_true(), &*condition.reason),
            (true, "PodNetworkStarting")
        );
        let stored = json!({"status": {"conditions": to_api(&[condition], &json!({}), "then")}});
        let left = network_condition(&NetworkState::Off, &stored, "first").unwrap();
        assert_eq!((left.is_true(), &*left.reason), (false, "PodNetworkOff"));
        // A condition that somebody else writes, or that an earlier agent left to others, stays.
        for reason in ["NoRouteCreated", network::REASON_OFF] {
            let stored = json!({"status": {"conditions": [
                {"type": "NetworkUnavailable", "status": "False", "reason": reason, "message": "why"}]}});
            assert_eq!(network_condition(&starting, &stored, "first"), None);
        }
    }

    #[test]
    fn a_condition_keeps_its_transition_time() {
        let before = json!({"status": {"conditions": to_api(&healthy(), &json!({}), "then")}});
        assert!(are_stored(&healthy(), &before));
        let full = Pressures {
            disk: true,
            ..Pressures::default()
        };
        let full = conditions(&Health::default(), full, None);
        assert!(!are_stored(&full, &before));
        let after = to_api(&full, &before, "now");
        let since = |at: usize| after[at]["lastTransitionTime"].as_str().unwrap().to_owned();
        assert_eq!((since(0), since(1)), ("then".to_owned(), "now".to_owned()));
        assert_eq!(after[1]["reason"], "KubeletHasDiskPressure");
        assert_eq!(after[0]["reason"], "KubeletHasSufficientMemory");
    }
}
