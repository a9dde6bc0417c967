//! The steps that change what runs: from the second version to the end.

use super::super::manifest::{BROKEN, FILE, NAME};
use super::super::promise::Promise;
use super::{Act, Plan, Step, apply, run, showing, why};

impl Plan<'_> {
    pub(super) fn roll_out(&mut self) -> Step {
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

    pub(super) fn break_it(&mut self) -> Step {
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
            why(true, "Should run it and does not"),
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

    pub(super) fn history() -> Step {
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

    pub(super) fn undo(&mut self) -> Step {
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

    pub(super) fn orphan_and_adopt(&self) -> Step {
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

    pub(super) fn delete() -> Step {
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
