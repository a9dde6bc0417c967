//! The first half of the tour: which nodes get a pod.

use super::super::manifest::{NAME, TAINT};
use super::{Builder, Step, apply, left_out, run, run_expecting, why};

impl Builder<'_> {
    pub(super) fn look_around(&self) -> Step {
        let taint = match &self.environment.tainted {
            Some(node) => format!(
                "{node} plays the control plane. Like all control planes it carries the taint\n\
                 {TAINT}:NoSchedule, which keeps pods away."
            ),
            None => "None of them is tainted: pods may go anywhere.\n\
                     `kennel playground` with three nodes has one that plays the control plane."
                .to_owned(),
        };
        let nodes = if self.environment.runs_processes {
            "They are nodes like any other, and run pods as processes of this machine."
        } else {
            "They are simulated: for Kubernetes they are nodes like any other, but nothing really runs."
        };
        let count = match self.environment.nodes.len() {
            1 => "one node".to_owned(),
            many => format!("{many} nodes"),
        };
        Step {
            title: "Look around",
            introduction: format!("This is a cluster with {count}."),
            actions: vec![run_expecting(
                "kubectl get nodes",
                self.environment.nodes.clone(),
            )],
            explanation: format!("{nodes}\n{taint}"),
        }
    }

    pub(super) fn apply(&self) -> Step {
        let tainted = self.environment.tainted.as_ref();
        let mut actions = vec![
            self.edit(),
            apply(),
            self.runs_on(|node| Some(node) != tainted, false),
            run_expecting("kubectl get daemonsets", vec![NAME.to_owned()]),
            run("kubectl get pods -o wide"),
        ];
        if tainted.is_some() {
            actions.push(why(false, "is not tolerated"));
        }
        Step {
            title: "Apply a DaemonSet",
            introduction: "A DaemonSet keeps one pod on every node: a log shipper, an exporter, a network plug-in."
                .to_owned(),
            actions,
            explanation: match tainted {
                Some(node) if self.single_node() => format!(
                    "No pod at all: {node} is the only node, and nothing in the file tolerates its taint.\n\
                     DESIRED is the number of nodes that it fits. Nobody has to keep it up to date."
                ),
                Some(node) => format!(
                    "One pod on every node, without a number of replicas to keep up to date.\n\
                     {node} has none, and `kennel why` says what would change that."
                ),
                None => "One pod on every node, without a number of replicas to keep up to date.\n\
                         A node that joins later gets its own by itself."
                    .to_owned(),
            },
        }
    }

    pub(super) fn tolerate(&mut self) -> Step {
        let title = "Tolerate the taint";
        let Some(node) = self.environment.tainted.clone() else {
            let reason = "no node is tainted here.".to_owned();
            return left_out(title, reason);
        };
        self.manifest.tolerates = true;
        self.manifest.cause = "version 1.0, control planes too";
        Step {
            title,
            introduction: format!(
                "Daemons often belong on control planes, too. {node} wants to be tolerated."
            ),
            actions: vec![self.edit(), apply(), self.runs_everywhere(false)],
            explanation: if self.single_node() {
                format!(
                    "{node} has its pod. Tolerations allow, they do not attract: what brings the pod there\n\
                     is the DaemonSet, which wants one on every node that it fits."
                )
            } else {
                format!(
                    "{node} has its pod. Tolerations are part of the pod template, so this was a rollout:\n\
                 the other pods were replaced as well, never more than maxUnavailable at once."
                )
            },
        }
    }

    pub(super) fn select(&mut self) -> Step {
        self.manifest.selects = true;
        self.manifest.cause = "version 1.0, where logs=ship";
        let node = self.labelled_node();
        Step {
            title: "Choose nodes by label",
            introduction: format!(
                "With a nodeSelector, only nodes with that label count. {node} gets it first."
            ),
            actions: vec![
                run(format!("kubectl label node {node} logs=ship")),
                self.edit(),
                apply(),
                self.runs_on(|name| name == node, false),
            ],
            explanation: if self.single_node() {
                format!(
                    "On {node} the pod was replaced: the template is another one.\n\
                     On nodes without the label, pods would have ended at once."
                )
            } else {
                format!(
                    "The pods on nodes without the label ended at once; they are not wanted there any more.\n\
                     On {node} the pod was replaced: the template is another one."
                )
            },
        }
    }

    pub(super) fn label(&self) -> Step {
        let node = self.labelled_node();
        Step {
            title: "Label nodes in and out",
            introduction:
                "From here on, a label decides. First all nodes in, then one out, and in again."
                    .to_owned(),
            actions: vec![
                run("kubectl label nodes --all logs=ship --overwrite"),
                self.runs_everywhere(true),
                run(format!("kubectl label node {node} logs-")),
                self.runs_on(|name| name != node, false),
                run(format!("kubectl label node {node} logs=ship")),
                self.runs_everywhere(true),
            ],
            explanation:
                "Nobody touched the DaemonSet: its controller watches nodes as well as pods.\n\
                   New nodes, labels and taints are acted upon as they come."
                    .to_owned(),
        }
    }

    pub(super) fn look_in(&self) -> Step {
        let title = "Look into the pods";
        if !self.environment.runs_processes {
            let reason = "simulated pods have no logs, and nothing to run a command in.".to_owned();
            return left_out(title, reason);
        }
        let first_line =
            |node: &String| format!("version {} ships the logs of {node}", self.manifest.version);
        Step {
            title,
            introduction: "Logs of all of them at once, and a command inside one.".to_owned(),
            actions: vec![
                run_expecting(
                    format!("kubectl logs -l app={NAME} --prefix"),
                    self.environment.nodes.iter().map(first_line).collect(),
                ),
                run_expecting(
                    format!("kubectl exec daemonset/{NAME} -- printenv NODE"),
                    Vec::new(),
                ),
            ],
            explanation: "These are real processes. kubectl asks the server, the server asks the node's agent,\n\
                   the same way as with any Kubernetes."
                .to_owned(),
        }
    }
}
