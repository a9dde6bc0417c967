//! The table itself. A new event is a new line here.

use super::Known;

/// Something that went as it should.
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

/// Something that somebody should look at.
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

/// All of them, by who says them.
#[rustfmt::skip] // a table reads best with a line for each
pub static ALL: &[Known] = &[
    normal(DAEMON_SETS, "DaemonSet", "SuccessfulCreate", "A daemon pod was created."),
    warning(DAEMON_SETS, "DaemonSet", "FailedCreate",
        "A daemon pod was refused: a quota, admission, an invalid template."),
    normal(DAEMON_SETS, "DaemonSet", "SuccessfulDelete",
        "A daemon pod was deleted: for an update, or because its node is not the set's any more."),
    warning(DAEMON_SETS, "DaemonSet", "FailedDelete", "A daemon pod could not be deleted."),
    warning(DAEMON_SETS, "DaemonSet", "FailedDaemonPod",
        "A daemon pod has failed, and is deleted to make room for a new one."),
    normal(DAEMON_SETS, "DaemonSet", "SucceededDaemonPod",
        "A daemon pod has ended well, which daemons do not; it is deleted to make room for a new one."),
    warning(DAEMON_SETS, "DaemonSet", "SelectingAll",
        "The selector is empty and would select every pod: nothing is done for this DaemonSet."),
    normal(SCHEDULER, "Pod", "Scheduled", "The pod was given its node."),
    warning(SCHEDULER, "Pod", "FailedScheduling",
        "No node fits the pod, with the number of nodes for each cause; or its binding was refused."),
    normal(SCHEDULER, "Pod", "Preempted", "The pod was evicted for a more important one."),
    normal(NODES, "Node", "RegisteredNode", "A node is new to the controller."),
    normal(NODES, "Node", "RemovingNode", "A node's object is gone."),
    normal(NODES, "Node", "NodeNotReady", "The node has been silent for too long."),
    warning(NODES, "Pod", "NodeNotReady",
        "The pod's node has been silent for too long: the pod does not count as ready any more."),
    normal(EVICTION, "Pod", "TaintManagerEviction",
        "A NoExecute taint drives the pod off its node; or did, and it may stay after all."),
    warning(COLLECTOR, "", "OwnerRefInvalidNamespace",
        "An object names an owner in its own namespace that is not there but elsewhere."),
    normal(AGENT, "Pod", "Pulling", "An image is being fetched."),
    normal(AGENT, "Pod", "Pulled", "An image is there, fetched or from before."),
    normal(AGENT, "Pod", "Created", "A container was made."),
    normal(AGENT, "Pod", "Started", "A container was started."),
    normal(AGENT, "Pod", "Killing",
        "A container is being stopped: the pod is deleted, or a probe failed for too long."),
    normal(AGENT, "Pod", "SandboxChanged", "What the containers live in is gone or changed, and is made again."),
    normal(AGENT, "Pod", "BackOff", "An image could not be fetched, and is tried again later."),
    warning(AGENT, "Pod", "BackOff", "A container ends again and again, and is started again later."),
    warning(AGENT, "Pod", "Failed",
        "An image could not be fetched, or a container not made or started; the message says why."),
    warning(AGENT, "Pod", "ErrImageNeverPull", "The image is not there, and its pull policy is Never."),
    warning(AGENT, "Pod", "FailedToRetrieveImagePullSecret",
        "A pull secret that the pod names is not there or makes no sense."),
    warning(AGENT, "Pod", "InvalidEnvironmentVariableNames",
        "Keys of a ConfigMap or Secret that cannot be variables are left out."),
    warning(AGENT, "Pod", "CreateContainerConfigError",
        "What a container refers to is not there: a ConfigMap, a Secret, a key."),
    warning(AGENT, "Pod", "FailedMount", "A volume cannot be set up."),
    warning(AGENT, "Pod", "FailedCreatePodSandBox", "What the containers are to live in cannot be made."),
    warning(AGENT, "Pod", "FailedToMakePodDataDirectories", "The pod's own directories cannot be made."),
    warning(AGENT, "Pod", "MissingClusterDNS",
        "The pod asks for the cluster's names and the agent knows no server for them: it gets those of the machine."),
    warning(AGENT, "Pod", "DNSConfigForming", "The pod's name servers or search domains are more than it can have."),
    warning(AGENT, "Pod", "Unhealthy", "A probe failed."),
    warning(AGENT, "Pod", "FailedPostStartHook", "A postStart hook failed: the container is stopped."),
    warning(AGENT, "Pod", "FailedPreStopHook", "A preStop hook failed: the container is stopped all the same."),
    warning(AGENT, "Pod", "FailedKillPod", "A container or its surroundings could not be stopped."),
    normal(AGENT, "Pod", "DeadlineExceeded", "The pod was active for longer than its activeDeadlineSeconds."),
    warning(AGENT, "Pod", "Evicted",
        "The machine is short of memory or disk, or the pod uses more disk than it may."),
    warning(AGENT, "Pod", "Preempting", "The pod makes room for a critical one that has no other place."),
    warning(AGENT, "Pod", "OutOf…",
        "The pod was sent to this node and asks for more of something than is left (`OutOfcpu`, `OutOfmemory`, \
         `OutOfpods`)."),
    warning(AGENT, "Pod", "NodeAffinity",
        "The pod was sent to this node, and its selector or affinity does not fit it."),
    warning(AGENT, "Pod", "NodePorts", "The pod was sent to this node, and one of its host ports is taken."),
    warning(AGENT, "Pod", "TaintToleration",
        "The pod was sent to this node, and does not tolerate a NoExecute taint of it."),
    warning(AGENT, "Pod", "PodOSSelectorNodeLabelDoesNotMatch", "The pod selects another operating system."),
    warning(AGENT, "Pod", "PodOSNotSupported", "The pod's spec.os names another operating system."),
    warning(AGENT, "Pod", "UnexpectedAdmissionError",
        "A critical pod has no room here, and no other could make any."),
    warning(AGENT, "Node", "EvictionThresholdMet", "The machine runs out of memory or disk; pods will have to go."),
    warning(AGENT, "Node", "InvalidStaticPod", "A file in the directory of static pods makes no sense."),
    normal(AGENT, "Node", "Starting", "The agent has begun."),
    normal(AGENT, "Node", "NodeReady", "The node can run pods."),
    normal(AGENT, "Node", "NodeNotReady",
        "It cannot: the container runtime does not answer, or the network of pods is not set up."),
    normal(AGENT, "Node", "NodeHasInsufficientMemory", "The machine is short of memory."),
    normal(AGENT, "Node", "NodeHasSufficientMemory", "It is not, or not any more."),
    normal(AGENT, "Node", "NodeHasDiskPressure", "The machine is short of disk."),
    normal(AGENT, "Node", "NodeHasNoDiskPressure", "It is not, or not any more."),
    normal(AGENT, "Node", "NodeHasInsufficientPID", "The machine is short of process ids."),
    normal(AGENT, "Node", "NodeHasSufficientPID", "It is not, or not any more."),
    normal(AGENT, "Node", "NodeNotSchedulable", "Somebody has cordoned the node."),
    normal(AGENT, "Node", "NodeSchedulable", "Somebody has ended that."),
    warning(AGENT, "Node", "Rebooted", "The machine was started anew since it last reported."),
];
