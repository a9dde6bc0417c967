//! The steps of the tour, as data: what each says, runs, and promises to show on a given stage.

use super::super::stage::Stage;
use super::manifest::{BROKEN, FILE, Manifest, NAME, TAINT};
use super::promise::Promise;

/// With more nodes than this, a quarter of them is updated at a time: one by one would take too long.
const ONE_BY_ONE: usize = 6;

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    /// Its headline.
    pub(super) title: &'static str,
    /// What is about to happen.
    pub(super) lead: String,
    /// What is done, in order; nothing where the stage does not allow for the step.
    pub(super) acts: Vec<Act>,
    /// What just happened.
    pub(super) told: String,
}

/// One thing that a step does.
#[derive(Debug)]
pub(super) enum Act {
    /// The file is written: all of it is shown, or what changes.
    Edit(Manifest),
    /// A command is run.
    Run(Run),
    /// The cluster is watched until it shows this.
    Watch(Promise),
}

/// A command. In its line, `{failing}` stands for the name of a pod that fails.
#[derive(Debug)]
pub(super) struct Run {
    /// The command line.
    pub(super) line: String,
    /// Its exit code.
    pub(super) code: i32,
    /// What its output must have in it.
    pub(super) shows: Vec<String>,
}

fn run(line: impl Into<String>) -> Act {
    showing(line, Vec::new())
}

fn showing(line: impl Into<String>, shows: Vec<String>) -> Act {
    let (line, code) = (line.into(), 0);
    Act::Run(Run { line, code, shows })
}

fn apply() -> Act {
    run(format!("kubectl apply -f {FILE}"))
}

/// What the steps need to know of the stage, and the file as it is at each of them.
struct Plan<'a> {
    stage: &'a Stage,
    file: Manifest,
}

/// All steps on this stage, for a user who is root or not.
pub(super) fn steps(stage: &Stage, root: bool) -> Vec<Step> {
    let many = stage.nodes.len() > ONE_BY_ONE;
    let mut plan = Plan {
        stage,
        file: Manifest {
            version: "1.0",
            cause: "version 1.0",
            max_unavailable: if many { "25%" } else { "1" },
            tolerates: false,
            selects: false,
            unprivileged: stage.runs_processes && !root,
        },
    };
    vec![
        plan.look_around(),
        plan.apply(),
        plan.tolerate(),
        plan.select(),
        plan.label(),
        plan.look_in(),
        plan.roll_out(),
        plan.break_it(),
        plan.history(),
        plan.undo(),
        plan.orphan_and_adopt(),
        plan.delete(),
    ]
}

impl Plan<'_> {
    /// Whether there is only one node.
    fn alone(&self) -> bool {
        self.stage.nodes.len() == 1
    }

    /// The node that is labelled first, and out again.
    fn chosen(&self) -> &str {
        self.stage.nodes.last().map_or("", String::as_str)
    }

    /// How many nodes may be without at once.
    fn budget(&self) -> usize {
        match self.stage.nodes.len() {
            few if few <= ONE_BY_ONE => 1,
            many => many.div_ceil(4),
        }
    }

    /// The file as it is now runs on these nodes, and on no others.
    fn runs_on(&self, allowed: impl Fn(&String) -> bool, keeps: bool) -> Act {
        let nodes = self.stage.nodes.iter().filter(|node| allowed(node));
        Act::Watch(Promise::Runs {
            version: self.file.version,
            nodes: nodes.cloned().collect(),
            keeps,
        })
    }

    fn runs_everywhere(&self, keeps: bool) -> Act {
        self.runs_on(|_| true, keeps)
    }

    fn edit(&self) -> Act {
        Act::Edit(self.file.clone())
    }

    fn look_around(&self) -> Step {
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

    fn apply(&self) -> Step {
        let tainted = self.stage.tainted.as_ref();
        Step {
            title: "Apply a DaemonSet",
            lead: "A DaemonSet keeps one pod on every node: a log shipper, an exporter, a network plug-in."
                .to_owned(),
            acts: vec![
                self.edit(),
                apply(),
                self.runs_on(|node| Some(node) != tainted, false),
                showing("kubectl get daemonsets", vec![NAME.to_owned()]),
                run("kubectl get pods -o wide"),
            ],
            told: match tainted {
                Some(node) if self.alone() => format!(
                    "No pod at all: {node} is the only node, and nothing in the file tolerates its taint.\n\
                     DESIRED is the number of nodes that it fits. Nobody has to keep it up to date."
                ),
                Some(node) => format!(
                    "One pod on every node, without a number of replicas to keep up to date.\n\
                     {node} has none: nothing in the file tolerates its taint."
                ),
                None => "One pod on every node, without a number of replicas to keep up to date.\n\
                         A node that joins later gets its own by itself."
                    .to_owned(),
            },
        }
    }

    fn tolerate(&mut self) -> Step {
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

    fn select(&mut self) -> Step {
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

    fn label(&self) -> Step {
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

    fn look_in(&self) -> Step {
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

    fn roll_out(&mut self) -> Step {
        self.file.version = "2.0";
        self.file.cause = "version 2.0";
        let pace = match self.budget() {
            1 => "one node after the other".to_owned(),
            many => format!("{many} nodes at a time"),
        };
        Step {
            title: "Roll out a new version",
            lead: format!("Version 2.0 is ready. Watch it go, {pace}."),
            acts: vec![
                self.edit(),
                apply(),
                self.runs_everywhere(false),
                showing(
                    format!("kubectl rollout status daemonset/{NAME}"),
                    vec!["successfully rolled out".to_owned()],
                ),
            ],
            told: "The old pod ends, the new one starts, and only when that has been ready for two seconds\n\
                   (minReadySeconds) it is the next node's turn: maxUnavailable is the budget."
                .to_owned(),
        }
    }

    fn break_it(&mut self) -> Step {
        let good = self.file.version;
        self.file.version = BROKEN;
        self.file.cause = "version 3.0";
        let (fails, of) = (self.budget(), self.stage.nodes.len());
        let bad = BROKEN;
        let mut acts = vec![
            self.edit(),
            apply(),
            Act::Watch(Promise::Stuck {
                bad,
                good,
                fails,
                of,
            }),
            showing("kubectl get pods", vec!["CrashLoopBackOff".to_owned()]),
        ];
        if self.stage.runs_processes {
            let shows = vec!["ship-logs".to_owned()];
            acts.push(showing("kubectl logs {failing}", shows));
        }
        Step {
            title: "Break it",
            lead: "Version 3.0 runs a program that no node has. This could be any bad release."
                .to_owned(),
            acts,
            told: match of - fails {
                0 => "The pod crashes and is started again, after ever longer pauses. With more nodes than\n\
                      one, the others would have kept version 2.0: maxUnavailable stops the rollout."
                    .to_owned(),
                others => {
                    let without = match fails {
                        1 => "one node is".to_owned(),
                        many => format!("{many} nodes are"),
                    };
                    format!(
                        "A pod that crashes is never ready for two seconds, so the rollout stops at maxUnavailable:\n\
                         {without} without a log shipper, the other {others} run version 2.0 as if nothing had happened."
                    )
                }
            },
        }
    }

    fn history(&self) -> Step {
        Step {
            title: "Look at the history",
            lead: "What was changed, and when was it still good?".to_owned(),
            acts: vec![showing(
                format!("kubectl rollout history daemonset/{NAME}"),
                vec!["version 2.0".to_owned(), "version 3.0".to_owned()],
            )],
            told:
                "Each template is kept as a ControllerRevision, the last ten of them by default.\n\
                   CHANGE-CAUSE is the file's annotation kubernetes.io/change-cause."
                    .to_owned(),
        }
    }

    fn undo(&mut self) -> Step {
        self.file.version = "2.0";
        self.file.cause = "version 2.0";
        Step {
            title: "Undo",
            lead: "Back to the revision before.".to_owned(),
            acts: vec![
                run(format!("kubectl rollout undo daemonset/{NAME}")),
                self.runs_everywhere(true),
                run(format!("kubectl rollout history daemonset/{NAME}")),
                self.edit(),
            ],
            told: "The old revision got a new number, and only broken pods were replaced: the others ran\n\
                   that very template. The file goes back, too, or the next apply would break it again."
                .to_owned(),
        }
    }

    fn orphan_and_adopt(&self) -> Step {
        Step {
            title: "Orphan and adopt",
            lead: "A DaemonSet can go without its pods, and another one can take them over.".to_owned(),
            acts: vec![
                run(format!("kubectl delete daemonset {NAME} --cascade=orphan")),
                Act::Watch(Promise::Orphaned),
                run("kubectl get daemonsets,pods"),
                apply(),
                self.runs_everywhere(true),
                run("kubectl get daemonsets,pods"),
            ],
            told: "The pods ran on alone. The new DaemonSet found pods with its labels and its template,\n\
                   and adopted them: same names, no restarts. So one can be replaced without an outage."
                .to_owned(),
        }
    }

    fn delete(&self) -> Step {
        Step {
            title: "Delete it",
            lead: "And the usual way to end it.".to_owned(),
            acts: vec![
                run(format!("kubectl delete -f {FILE}")),
                Act::Watch(Promise::Gone),
                run("kubectl get daemonsets,pods,controllerrevisions"),
            ],
            told:
                "Without --cascade=orphan, pods and history go with their DaemonSet: the garbage\n\
                   collector follows the owner that each of them names."
                    .to_owned(),
        }
    }
}

fn left_out(title: &'static str, told: String) -> Step {
    Step {
        title,
        lead: String::new(),
        acts: Vec::new(),
        told,
    }
}
