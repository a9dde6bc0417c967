//! Safe rollouts: a release in stages, and one that goes back by itself.

use super::super::expectation::Expectation;
use super::super::manifest::{BROKEN_VERSIONS, NAME};
use super::{Action, Builder, Step, apply, run, run_expecting, status};

/// The number of nodes of the policy's first stage.
const FIRST_STAGE: usize = 1;

impl Builder<'_> {
    pub(super) fn release_in_stages(&mut self) -> Step {
        let old = self.manifest.version;
        let new = "2.1";
        self.manifest.version = new;
        self.manifest.cause = "version 2.1";
        self.manifest.staged = true;
        let nodes = self.environment.nodes.len();
        Step {
            title: "Release in stages",
            introduction: "Version 2.1, with more care: one node first, then a person looks, then all. The file says so."
                .to_owned(),
            actions: vec![
                self.edit(),
                apply(),
                Action::Watch(Expectation::Stage {
                    new,
                    old,
                    reached: FIRST_STAGE,
                    nodes,
                }),
                status(4, "waits for a person"),
                run(format!("kennel rollout promote ds/{NAME}")),
                self.runs_everywhere(false),
            ],
            explanation: "The policy is a few annotations, so kubectl, Helm and GitOps tools need not know about it.\n\
                   Stages can be percentages or labels of nodes, too, and wait for a time instead of a person."
                .to_owned(),
        }
    }

    pub(super) fn go_back(&mut self) -> Step {
        let (good, cause) = (self.manifest.version, self.manifest.cause);
        self.manifest.version = BROKEN_VERSIONS[1];
        self.manifest.cause = "version 3.1";
        let broken = self.edit();
        (self.manifest.version, self.manifest.cause) = (good, cause);
        let reached = match self.environment.nodes.len() {
            1 => "The node",
            _ => "One node",
        };
        Step {
            title: "A bad release goes back by itself",
            introduction:
                "Version 3.1 has the same mistake as 3.0. This time nobody does anything."
                    .to_owned(),
            actions: vec![
                broken,
                apply(),
                Action::Watch(Expectation::WentBack {
                    version: good,
                    nodes: self.environment.nodes.clone(),
                }),
                status(1, "has failed and is held"),
                run_expecting(
                    format!("kennel rollout history ds/{NAME}"),
                    vec!["failed".to_owned(), "stable".to_owned()],
                ),
                self.edit(),
                apply(),
                self.runs_everywhere(true),
            ],
            explanation: format!(
                "{reached} saw it, and went back to {good}. Nothing rewrites the file: 3.1 is held until the file\n\
                 changes or `kennel rollout retry`. With 2.1 in the file again, no pod was restarted."
            ),
        }
    }
}
