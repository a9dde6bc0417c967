//! The steps that bring pods to nodes: the first half of the tour.

use super::super::manifest::{NAME, TAINT};
use super::{Plan, Step, apply, left_out, run, showing, why};

impl Plan<'_> {
    pub(super) fn look_around(&self) -> Step {
        let taint = match &self.stage.tainted {
            Some(node) => format!(
                "{node} plays the control plane. Like all control planes it carries the taint\n\
                 {TAINT}:NoSchedule, which keeps pods away."
            ),
            None => "None of them is tainted: pods may go anywhere.\n\
                     `kennel playground` with three nodes has one that plays the control plane."
                .to_owned(),
        };
        let nodes = if self.stage.runs_processes {
            "They are nodes like any other, and run pods as processes of this machine."
        } else {
            "They are simulated: for Kubernetes they are nodes like any other, but nothing really runs."
        };
        let count = match self.stage.nodes.len() {
            1 => "one node".to_owned(),
            many => format!("{many} nodes"),
        };
        Step {
            title: "Look around",
            lead: format!("This is a cluster with {count}."),
            acts: vec![showing("kubectl get nodes", self.stage.nodes.clone())],
            told: format!("{nodes}\n{taint}"),
        }
    }

    pub(super) fn apply(&self) -> Step {
        let tainted = self.stage.tainted.as_ref();
        let mut acts = vec![
            self.edit(),
            apply(),
            self.runs_on(|node| Some(node) != tainted, false),
            showing("kubectl get daemonsets", vec![NAME.to_owned()]),
            run("kubectl get pods -o wide"),
        ];
        if tainted.is_some() {
            acts.push(why(false, "is not tolerated"));
        }
        Step {
            title: "Apply a DaemonSet",
            lead: "A DaemonSet keeps one pod on every node: a log shipper, an exporter, a network plug-in."
                .to_owned(),
            acts,
            told: match tainted {
                Some(node) if self.alone() => format!(
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
        let Some(node) = self.stage.tainted.clone() else {
            let told = "no node is tainted here.".to_owned();
            return left_out(title, told);
        };
        self.file.tolerates = true;
        self.file.cause = "version 1.0, control planes too";
        Step {
            title,
            lead: format!(
                "Daemons often belong on control planes, too. {node} wants to be tolerated."
            ),
            acts: vec![self.edit(), apply(), self.runs_everywhere(false)],
            told: if self.alone() {
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
        self.file.selects = true;
        self.file.cause = "version 1.0, where logs=ship";
        let chosen = self.chosen();
        Step {
            title: "Choose nodes by label",
            lead: format!(
                "With a nodeSelector, only nodes with that label count. {chosen} gets it first."
            ),
            acts: vec![
                run(format!("kubectl label node {chosen} logs=ship")),
                self.edit(),
                apply(),
                self.runs_on(|node| node == chosen, false),
            ],
            told: if self.alone() {
                format!(
                    "On {chosen} the pod was replaced: the template is another one.\n\
                     On nodes without the label, pods would have ended at once."
                )
            } else {
                format!(
                    "The pods on nodes without the label ended at once; they are not wanted there any more.\n\
                     On {chosen} the pod was replaced: the template is another one."
                )
            },
        }
    }

    pub(super) fn label(&self) -> Step {
        let chosen = self.chosen();
        Step {
            title: "Label nodes in and out",
            lead: "From here on, a label decides. First all nodes in, then one out, and in again."
                .to_owned(),
            acts: vec![
                run("kubectl label nodes --all logs=ship --overwrite"),
                self.runs_everywhere(true),
                run(format!("kubectl label node {chosen} logs-")),
                self.runs_on(|node| node != chosen, false),
                run(format!("kubectl label node {chosen} logs=ship")),
                self.runs_everywhere(true),
            ],
            told: "Nobody touched the DaemonSet: its controller watches nodes as well as pods.\n\
                   New nodes, labels and taints are acted upon as they come."
                .to_owned(),
        }
    }

    pub(super) fn look_in(&self) -> Step {
        let title = "Look into the pods";
        if !self.stage.runs_processes {
            let told = "simulated pods have no logs, and nothing to run a command in.".to_owned();
            return left_out(title, told);
        }
        let words =
            |node: &String| format!("version {} ships the logs of {node}", self.file.version);
        Step {
            title,
            lead: "Logs of all of them at once, and a command inside one.".to_owned(),
            acts: vec![
                showing(
                    format!("kubectl logs -l app={NAME} --prefix"),
                    self.stage.nodes.iter().map(words).collect(),
                ),
                showing(
                    format!("kubectl exec daemonset/{NAME} -- printenv NODE"),
                    Vec::new(),
                ),
            ],
            told: "These are real processes. kubectl asks the server, the server asks the node's agent,\n\
                   the same way as with any Kubernetes."
                .to_owned(),
        }
    }
}
