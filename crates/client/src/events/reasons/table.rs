//! The rows of the table. A new event is a new row.

use super::Known;

const fn normal(
    component: &'static str,
    about: &'static str,
    reason: &'static str,
    when: &'static str,
) -> Known {
    Known {
        component,
        about,
        reason,
        warning: false,
        when,
    }
}

const fn warning(
    component: &'static str,
    about: &'static str,
    reason: &'static str,
    when: &'static str,
) -> Known {
    Known {
        warning: true,
        ..normal(component, about, reason, when)
    }
}

const DAEMON_SETS: &str = "daemonset-controller";
pub(super) const SCHEDULER: &str = "default-scheduler";
const NODES: &str = "node-controller";
const EVICTION: &str = "taint-eviction-controller";
pub(super) const COLLECTOR: &str = "garbage-collector-controller";
pub(super) const AGENT: &str = "kubelet";

/// All events, by component.
#[rustfmt::skip] // one row per line
pub static ALL: &[Known] = &[
    normal(DAEMON_SETS, "DaemonSet", "SuccessfulCreate", "A daemon pod was created."),
    warning(DAEMON_SETS, "DaemonSet", "FailedCreate",
        "The API refused to create a daemon pod: quota, admission, or an invalid template."),
    normal(DAEMON_SETS, "DaemonSet", "SuccessfulDelete",
        "A daemon pod was deleted: for a rolling update, or because its node is no longer eligible."),
    warning(DAEMON_SETS, "DaemonSet", "FailedDelete", "Deleting a daemon pod failed."),
    warning(DAEMON_SETS, "DaemonSet", "FailedDaemonPod",
        "A daemon pod failed, and is deleted so that it can be replaced."),
    normal(DAEMON_SETS, "DaemonSet", "SucceededDaemonPod",
        "A daemon pod succeeded, although daemons should not terminate, and is deleted so that it can be replaced."),
    warning(DAEMON_SETS, "DaemonSet", "SelectingAll",
        "The selector is empty and would select every pod, so the controller ignores this DaemonSet."),
    normal(DAEMON_SETS, "DaemonSet", "RolloutStarted", "A staged rollout of a new revision has started."),
    normal(DAEMON_SETS, "DaemonSet", "StageStarted", "The next stage of a rollout has started."),
    normal(DAEMON_SETS, "DaemonSet", "StageHealthy", "Every node of a stage is healthy, and the stage bakes."),
    normal(DAEMON_SETS, "DaemonSet", "AwaitingPromotion",
        "A rollout waits for a person: its stage is `manual`, or has no nodes."),
    warning(DAEMON_SETS, "DaemonSet", "NodeFailed", "A node's pod of the new revision has failed; the message says why."),
    warning(DAEMON_SETS, "DaemonSet", "RolloutFailed",
        "A rollout has failed or was aborted; the message names the commonest cause and the nodes."),
    warning(DAEMON_SETS, "DaemonSet", "RolloutPaused", "A rollout has failed and waits for a person to decide."),
    warning(DAEMON_SETS, "DaemonSet", "RollingBack",
        "After a failure or an abort, every node goes back to the stable revision."),
    normal(DAEMON_SETS, "DaemonSet", "RolledBack",
        "Every node is back on the stable revision; the failed revision is held until a person retries it."),
    normal(DAEMON_SETS, "DaemonSet", "RolloutComplete", "Every node has the new revision, and it is stable."),
    normal(DAEMON_SETS, "DaemonSet", "RolloutSuperseded", "A newer template takes the place of one that was being rolled out."),
    warning(DAEMON_SETS, "DaemonSet", "PolicyInvalid",
        "An annotation of the rollout policy cannot be read, so no node changes its revision."),
    warning(DAEMON_SETS, "DaemonSet", "PolicyIgnored",
        "The rollout policy does not count for this controller: with the strategy OnDelete it needs --assist, and with \
         --assist it needs OnDelete."),
    warning(DAEMON_SETS, "DaemonSet", "FreezeIncomplete",
        "With --assist, freeze stops deletions; the cluster's own controller still creates missing pods."),
    warning(DAEMON_SETS, "DaemonSet", "CheckInconclusive",
        "The check of a rollout policy could not be asked or gave no clear answer, and is asked again."),
    warning(DAEMON_SETS, "DaemonSet", "CommandIgnored",
        "A rollout command cannot be read, or names nothing that it could act on."),
    normal(SCHEDULER, "Pod", "Scheduled", "The pod was bound to a node."),
    warning(SCHEDULER, "Pod", "FailedScheduling",
        "No node fits the pod, with the number of nodes for each reason; or its binding was refused."),
    normal(SCHEDULER, "Pod", "Preempted", "The pod was preempted by one of higher priority."),
    normal(NODES, "Node", "RegisteredNode", "The controller observed a new node."),
    normal(NODES, "Node", "RemovingNode", "A Node object was deleted."),
    normal(NODES, "Node", "NodeNotReady", "The node has not renewed its lease in time."),
    warning(NODES, "Pod", "NodeNotReady",
        "The pod's node has not renewed its lease in time, so the pod is marked not ready."),
    normal(EVICTION, "Pod", "TaintManagerEviction",
        "A NoExecute taint evicts the pod from its node, or the eviction was cancelled."),
    warning(COLLECTOR, "", "OwnerRefInvalidNamespace",
        "An object has an owner reference to an object that exists only in another namespace."),
    normal(AGENT, "Pod", "Pulling", "An image is being pulled."),
    normal(AGENT, "Pod", "Pulled", "An image was pulled, or was already present on the node."),
    normal(AGENT, "Pod", "Created", "A container was created."),
    normal(AGENT, "Pod", "Started", "A container was started."),
    normal(AGENT, "Pod", "Killing",
        "A container is being stopped: the pod is being deleted, or a probe failed too often."),
    normal(AGENT, "Pod", "SandboxChanged", "The pod sandbox is gone or has changed, and is created again."),
    normal(AGENT, "Pod", "BackOff", "Pulling an image failed, and is retried after a backoff."),
    warning(AGENT, "Pod", "BackOff", "A container terminated repeatedly, and is restarted after a backoff."),
    warning(AGENT, "Pod", "Failed",
        "An image could not be pulled, or a container not created or started; the message says why."),
    warning(AGENT, "Pod", "ErrImageNeverPull", "The image is not present, and its pull policy is Never."),
    warning(AGENT, "Pod", "FailedToRetrieveImagePullSecret",
        "An image pull secret of the pod is missing or invalid."),
    warning(AGENT, "Pod", "InvalidEnvironmentVariableNames",
        "Keys of a ConfigMap or Secret that are not valid variable names are skipped."),
    warning(AGENT, "Pod", "CreateContainerConfigError",
        "A ConfigMap, a Secret or a key that a container refers to is missing."),
    warning(AGENT, "Pod", "FailedMount", "Setting up a volume failed."),
    warning(AGENT, "Pod", "FailedCreatePodSandBox", "Creating the pod sandbox failed."),
    warning(AGENT, "Pod", "FailedToMakePodDataDirectories", "Creating the pod's directories failed."),
    warning(AGENT, "Pod", "MissingClusterDNS",
        "The pod's DNS policy needs a cluster DNS server and the agent has none, so the pod gets the machine's."),
    warning(AGENT, "Pod", "DNSConfigForming", "The pod's name servers or search domains exceed the limits."),
    warning(AGENT, "Pod", "Unhealthy", "A probe failed."),
    warning(AGENT, "Pod", "FailedPostStartHook", "A postStart hook failed, so the container is stopped."),
    warning(AGENT, "Pod", "FailedPreStopHook", "A preStop hook failed; the container is stopped anyway."),
    warning(AGENT, "Pod", "FailedKillPod", "Stopping a container or the pod sandbox failed."),
    normal(AGENT, "Pod", "DeadlineExceeded", "The pod was active for longer than its activeDeadlineSeconds."),
    warning(AGENT, "Pod", "Evicted",
        "The node is under memory or disk pressure, or the pod exceeds its ephemeral storage limit."),
    warning(AGENT, "Pod", "Preempting", "The pod is preempted by a critical pod that fits only on this node."),
    warning(AGENT, "Pod", "OutOf…",
        "The pod was bound to this node and requests more of a resource than is free (`OutOfcpu`, `OutOfmemory`, \
         `OutOfpods`)."),
    warning(AGENT, "Pod", "NodeAffinity",
        "The pod was bound to this node, and its node selector or affinity does not match it."),
    warning(AGENT, "Pod", "NodePorts", "The pod was bound to this node, and one of its host ports is in use."),
    warning(AGENT, "Pod", "TaintToleration",
        "The pod was bound to this node, and does not tolerate one of its NoExecute taints."),
    warning(AGENT, "Pod", "PodOSSelectorNodeLabelDoesNotMatch", "The pod selects another operating system."),
    warning(AGENT, "Pod", "PodOSNotSupported", "The pod's spec.os names another operating system."),
    warning(AGENT, "Pod", "UnexpectedAdmissionError",
        "A critical pod does not fit, and preempting others would not help."),
    warning(AGENT, "Node", "EvictionThresholdMet", "The node is running out of memory or disk and will evict pods."),
    warning(AGENT, "Node", "InvalidStaticPod", "A manifest in the static pod directory is invalid."),
    normal(AGENT, "Node", "Starting", "The agent has started."),
    normal(AGENT, "Node", "NodeReady", "The node can run pods."),
    normal(AGENT, "Node", "NodeNotReady",
        "The node cannot run pods: the container runtime does not respond, or the pod network is not ready."),
    normal(AGENT, "Node", "NodeHasInsufficientMemory", "The node is under memory pressure."),
    normal(AGENT, "Node", "NodeHasSufficientMemory", "The node is no longer under memory pressure."),
    normal(AGENT, "Node", "NodeHasDiskPressure", "The node is under disk pressure."),
    normal(AGENT, "Node", "NodeHasNoDiskPressure", "The node is no longer under disk pressure."),
    normal(AGENT, "Node", "NodeHasInsufficientPID", "The node is under PID pressure."),
    normal(AGENT, "Node", "NodeHasSufficientPID", "The node is no longer under PID pressure."),
    normal(AGENT, "Node", "NodeNotSchedulable", "The node was cordoned."),
    normal(AGENT, "Node", "NodeSchedulable", "The node was uncordoned."),
    warning(AGENT, "Node", "Rebooted", "The machine has rebooted since the last report."),
];
