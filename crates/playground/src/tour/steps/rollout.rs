//! The second half of the tour: rollouts, history, adoption and deletion.

use super::super::expectation::Expectation;
use super::super::manifest::{BROKEN_VERSIONS, FILE, NAME};
use super::{Action, Builder, Step, apply, run, run_expecting, why};

impl Builder<'_> {
    pub(super) fn roll_out(&mut self) -> Step {
        self.manifest.version = "2.0";
        self.manifest.cause = "version 2.0";
        let batches = match self.max_unavailable() {
            1 => "one node after the other".to_owned(),
            many => format!("{many} nodes at a time"),
        };
        Step {
            title: "Roll out a new version",
            introduction: format!("Version 2.0 is ready. Watch it go, {batches}."),
            actions: vec![
                self.edit(),
                apply(),
                self.runs_everywhere(false),
                run_expecting(
                    format!("kubectl rollout status daemonset/{NAME}"),
                    vec!["successfully rolled out".to_owned()],
                ),
            ],
            explanation: "The old pod ends, the new one starts, and only when that has been ready for two seconds\n\
                   (minReadySeconds) it is the next node's turn: maxUnavailable is the budget."
                .to_owned(),
        }
    }

    pub(super) fn break_it(&mut self) -> Step {
        let old = self.manifest.version;
        let broken = BROKEN_VERSIONS[0];
        self.manifest.version = broken;
        self.manifest.cause = "version 3.0";
        let (failing, nodes) = (self.max_unavailable(), self.environment.nodes.len());
        let mut actions = vec![
            self.edit(),
            apply(),
            Action::Watch(Expectation::Stuck {
                new: broken,
                old,
                failing,
                nodes,
            }),
            run_expecting("kubectl get pods", vec!["CrashLoopBackOff".to_owned()]),
            why(true, "Should run it and does not"),
        ];
        if self.environment.runs_processes {
            let message = vec!["ship-logs".to_owned()];
            actions.push(run_expecting("kubectl logs {failing}", message));
        }
        Step {
            title: "Break it",
            introduction: "Version 3.0 runs a program that no node has. This could be any bad release."
                .to_owned(),
            actions,
            explanation: match nodes - failing {
                0 => "The pod crashes and is started again, after ever longer pauses. With more nodes than\n\
                      one, the others would have kept version 2.0: maxUnavailable stops the rollout."
                    .to_owned(),
                others => {
                    let without = match failing {
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
            introduction: "What was changed, and when was it still good?".to_owned(),
            actions: vec![run_expecting(
                format!("kubectl rollout history daemonset/{NAME}"),
                vec!["version 2.0".to_owned(), "version 3.0".to_owned()],
            )],
            explanation:
                "Each template is kept as a ControllerRevision, the last ten of them by default.\n\
                   CHANGE-CAUSE is the file's annotation kubernetes.io/change-cause."
                    .to_owned(),
        }
    }

    pub(super) fn undo(&mut self) -> Step {
        self.manifest.version = "2.0";
        self.manifest.cause = "version 2.0";
        Step {
            title: "Undo",
            introduction: "Back to the revision before.".to_owned(),
            actions: vec![
                run(format!("kubectl rollout undo daemonset/{NAME}")),
                self.runs_everywhere(true),
                run(format!("kubectl rollout history daemonset/{NAME}")),
                self.edit(),
            ],
            explanation: "The old revision got a new number, and only broken pods were replaced: the others ran\n\
                   that very template. The file goes back, too, or the next apply would break it again."
                .to_owned(),
        }
    }

    pub(super) fn orphan_and_adopt(&self) -> Step {
        Step {
            title: "Orphan and adopt",
            introduction: "A DaemonSet can go without its pods, and another one can take them over.".to_owned(),
            actions: vec![
                run(format!("kubectl delete daemonset {NAME} --cascade=orphan")),
                Action::Watch(Expectation::Orphaned),
                run("kubectl get daemonsets,pods"),
                apply(),
                self.runs_everywhere(true),
                run("kubectl get daemonsets,pods"),
            ],
            explanation: "The pods ran on alone. The new DaemonSet found pods with its labels and its template,\n\
                   and adopted them: same names, no restarts. So one can be replaced without an outage."
                .to_owned(),
        }
    }

    pub(super) fn delete() -> Step {
        Step {
            title: "Delete it",
            introduction: "And the usual way to end it.".to_owned(),
            actions: vec![
                run(format!("kubectl delete -f {FILE}")),
                Action::Watch(Expectation::Deleted),
                run("kubectl get daemonsets,pods,controllerrevisions"),
            ],
            explanation:
                "Without --cascade=orphan, pods and history go with their DaemonSet: the garbage\n\
                   collector follows the owner that each of them names."
                    .to_owned(),
        }
    }
}
