//! The steps of the tour, as data: what each says, runs, and promises to show on a given stage.

mod changing;
mod placing;

use super::super::stage::Stage;
use super::manifest::{FILE, Manifest, NAME};
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

/// The answer to why pods are where they are, and that it says this; `kennel why` fails where a node should
/// run a pod and does not.
fn why(fails: bool, shows: &str) -> Act {
    Act::Run(Run {
        line: format!("kennel why ds/{NAME}"),
        code: i32::from(fails),
        shows: vec![shows.to_owned()],
    })
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
        Plan::history(),
        plan.undo(),
        plan.orphan_and_adopt(),
        Plan::delete(),
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
}

fn left_out(title: &'static str, told: String) -> Step {
    Step {
        title,
        lead: String::new(),
        acts: Vec::new(),
        told,
    }
}
