//! The steps of the tour as data: text, commands and expectations, for a given environment.

mod placement;
mod rollout;
mod stages;

use super::Environment;
use super::expectation::Expectation;
use super::manifest::{FILE, Manifest, NAME};

/// With more nodes, a quarter of them is updated at a time, since one by one would take too long.
const ONE_BY_ONE_MAX: usize = 6;

#[derive(Debug)]
pub(super) struct Step {
    pub(super) title: &'static str,
    /// Printed before the actions.
    pub(super) introduction: String,
    /// Empty if the step is left out in this environment.
    pub(super) actions: Vec<Action>,
    /// Printed after the actions; for a step that is left out, the reason.
    pub(super) explanation: String,
}

#[derive(Debug)]
pub(super) enum Action {
    /// Writes the manifest.
    Edit(Manifest),
    /// Runs a command.
    Run(Run),
    /// Watches the cluster until the expectation is met.
    Watch(Expectation),
}

/// A command. `{failing}` in its line is replaced by the name of a pod that fails.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) line: String,
    /// The expected exit code.
    pub(super) code: i32,
    /// Texts that the output must contain.
    pub(super) output_contains: Vec<String>,
}

fn run(line: impl Into<String>) -> Action {
    run_expecting(line, Vec::new())
}

fn run_expecting(line: impl Into<String>, output_contains: Vec<String>) -> Action {
    Action::Run(Run {
        line: line.into(),
        code: 0,
        output_contains,
    })
}

/// Runs `kennel why`, whose exit code is 1 if a pod is missing on a node.
fn why(fails: bool, output_contains: &str) -> Action {
    Action::Run(Run {
        line: format!("kennel why ds/{NAME}"),
        code: i32::from(fails),
        output_contains: vec![output_contains.to_owned()],
    })
}

/// Runs `kennel rollout status` until the rollout comes to rest, with this exit code.
fn status(code: i32, output_contains: &str) -> Action {
    Action::Run(Run {
        line: format!("kennel rollout status ds/{NAME} --timeout=1m"),
        code,
        output_contains: vec![output_contains.to_owned()],
    })
}

fn apply() -> Action {
    run(format!("kubectl apply -f {FILE}"))
}

/// Builds the steps in order; `manifest` is the manifest at the current step.
struct Builder<'a> {
    environment: &'a Environment,
    manifest: Manifest,
}

pub(super) fn steps(environment: &Environment, root: bool) -> Vec<Step> {
    let many = environment.nodes.len() > ONE_BY_ONE_MAX;
    let mut builder = Builder {
        environment,
        manifest: Manifest {
            version: "1.0",
            cause: "version 1.0",
            max_unavailable: if many { "25%" } else { "1" },
            staged: false,
            tolerates: false,
            selects: false,
            unprivileged: environment.runs_processes && !root,
        },
    };
    vec![
        builder.look_around(),
        builder.apply(),
        builder.tolerate(),
        builder.select(),
        builder.label(),
        builder.look_in(),
        builder.roll_out(),
        builder.break_it(),
        Builder::history(),
        builder.undo(),
        builder.release_in_stages(),
        builder.go_back(),
        builder.orphan_and_adopt(),
        Builder::delete(),
    ]
}

impl Builder<'_> {
    fn single_node(&self) -> bool {
        self.environment.nodes.len() == 1
    }

    /// The node that is labelled and unlabelled.
    fn labelled_node(&self) -> &str {
        self.environment.nodes.last().map_or("", String::as_str)
    }

    /// maxUnavailable as a number of nodes.
    fn max_unavailable(&self) -> usize {
        match self.environment.nodes.len() {
            few if few <= ONE_BY_ONE_MAX => 1,
            many => many.div_ceil(4),
        }
    }

    /// Expects the current version on the eligible nodes and on no others.
    fn runs_on(&self, eligible: impl Fn(&String) -> bool, keeps_pods: bool) -> Action {
        let nodes = self.environment.nodes.iter().filter(|node| eligible(node));
        Action::Watch(Expectation::Runs {
            version: self.manifest.version,
            nodes: nodes.cloned().collect(),
            keeps_pods,
        })
    }

    fn runs_everywhere(&self, keeps_pods: bool) -> Action {
        self.runs_on(|_| true, keeps_pods)
    }

    fn edit(&self) -> Action {
        Action::Edit(self.manifest.clone())
    }
}

fn left_out(title: &'static str, reason: String) -> Step {
    Step {
        title,
        introduction: String::new(),
        actions: Vec::new(),
        explanation: reason,
    }
}
