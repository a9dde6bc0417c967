//! Which nodes each stage takes, and when a rollout can end (R3.2): for `kennel rollout plan`.

use std::fmt::Write as _;
use std::time::Duration;

use kennel_types::Timestamp;
use serde::Serialize;

use super::outline::{Outline, is_selected};
use super::policy::{Policy, Setting};
use super::stage::{Size, Stage};
use super::state::{Phase, Standing};
use super::text::{Names, nodes_text, plural};
use crate::duration::Go;

/// The version of the format. Fields may be added; none are removed or changed.
const SCHEMA: &str = "kennel-rollout-plan/1";

/// How the nodes get the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// A rollout in stages that starts when the template is applied.
    New,
    /// The rollout that is under way.
    Present,
    /// Every node has the template; the next rollout would go so.
    Next,
    /// The DaemonSet is created on all nodes at once; the next rollout would go so.
    FirstCreation,
    /// The revision's verdict is stable: all nodes go to it without stages (R5.6).
    Direct,
    /// The revision's verdict is failed: no node gets it (R5.6).
    Held,
    /// There is no policy: as upstream.
    Unstaged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageState {
    Done,
    Present,
    Ahead,
    /// It adds no node (R3.8).
    PassedOver,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStage {
    /// Counted from 1.
    pub stage: usize,
    /// As the policy has it: `10% 30m manual`.
    pub policy: String,
    pub state: StageState,
    /// How many nodes have had their turn when the stage is complete.
    pub reaches: usize,
    pub bake_seconds: u64,
    /// It waits for a person.
    pub manual: bool,
    /// The nodes that it adds, in order.
    pub nodes: Vec<String>,
    /// Nodes that it selects by label and that are down. One that returns while the stage is the present one gets the target;
    /// the others get it with the stage of their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub down: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub schema: &'static str,
    pub namespace: String,
    pub name: String,
    pub course: Course,
    /// The hash of the template's revision, if that exists already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The hash of the revision to go back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    /// The rollout's nodes.
    pub nodes: usize,
    pub stages: Vec<PlannedStage>,
    /// The bakes that are left, which no rollout is faster than.
    pub at_least_seconds: u64,
    /// If it starts or goes on now and nothing but bakes takes time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest_end: Option<Timestamp>,
    /// The stages ahead that wait for a person.
    pub promotions: Vec<usize>,
    /// What is to be known beside the stages.
    pub notes: Vec<String>,
}

impl PlannedStage {
    /// The nodes that it adds, for people.
    fn names(&self, all: bool) -> String {
        let (nodes, down) = (Names(&self.nodes, all), Names(&self.down, all));
        match (self.nodes.is_empty(), self.down.is_empty()) {
            _ if self.state == StageState::PassedOver => "passed over: adds no node".to_owned(),
            (true, true) => "waits until a node has these labels".to_owned(),
            (false, true) => nodes.to_string(),
            (true, false) => format!("down: {down}"),
            (false, false) => format!("{nodes}; down: {down}"),
        }
    }
}

impl Plan {
    /// `changes`: the template is not the one that the DaemonSet has at present.
    pub fn of(outline: &Outline<'_>, changes: bool) -> Self {
        let course = course(outline, changes);
        let staged = !matches!(course, Course::Direct | Course::Held | Course::Unstaged);
        let policy = outline.policy.as_ref().filter(|_| staged);
        let stages = policy.map_or_else(Vec::new, |policy| planned(outline, policy, course));
        let left = bakes_left(outline, course, &stages);
        let under_way = matches!(course, Course::New | Course::Present);
        let promotions = stages
            .iter()
            .filter(|stage| is_ahead(stage) && stage.manual);
        Self {
            schema: SCHEMA,
            namespace: outline.daemon_set.namespace.to_string(),
            name: outline.daemon_set.name.to_string(),
            course,
            target: outline.target.map(|target| target.hash().to_owned()),
            stable: outline.stable.map(|stable| stable.hash().to_owned()),
            nodes: outline.nodes.len(),
            at_least_seconds: left.as_secs(),
            earliest_end: under_way.then(|| outline.now + left),
            promotions: promotions.map(|stage| stage.stage).collect(),
            notes: notes(outline, &stages),
            stages,
        }
    }

    /// For people. Without `all`, a stage names only its first nodes.
    pub fn text(&self, all: bool) -> String {
        let mut out = format!(
            "DaemonSet {}/{}: {}\n",
            self.namespace,
            self.name,
            self.heading()
        );
        if !self.stages.is_empty() {
            out.push('\n');
            let width = self.stages.iter().map(|s| s.policy.len()).max();
            let width = width.unwrap_or(0).max("POLICY".len());
            // Writing to a String cannot fail.
            let _ = writeln!(out, "  STAGE  {:width$}  ADDS  REACHES  NODES", "POLICY");
            for stage in &self.stages {
                let names = stage.names(all);
                let (number, policy, adds) = (stage.stage, &stage.policy, stage.nodes.len());
                let reaches = stage.reaches;
                let mark = if stage.state == StageState::Present {
                    '>'
                } else {
                    ' '
                };
                let _ = writeln!(
                    out,
                    "{mark} {number:<5}  {policy:width$}  {adds:>4}  {reaches:>7}  {names}"
                );
            }
        }
        let _ = write!(out, "{}", self.end());
        for note in &self.notes {
            let _ = writeln!(out, "Note: {note}.");
        }
        out
    }

    fn heading(&self) -> String {
        let nodes = nodes_text(self.nodes);
        let target = self.target.as_deref().unwrap_or("a new revision");
        let stages = self.stages.iter();
        let stages = stages.filter(|stage| stage.state != StageState::PassedOver);
        let stages = plural(stages.count(), "stage");
        match self.course {
            Course::New => format!("{target} reaches {nodes} in {stages}"),
            Course::Present => format!("{target} is being rolled out to {nodes} in {stages}"),
            Course::Next => {
                format!("{target} is complete; the next revision reaches {nodes} in {stages}")
            }
            Course::FirstCreation => format!(
                "the first creation reaches all {nodes} at once (stages-on-create is not set); \
                 later revisions take {stages}"
            ),
            Course::Direct => format!(
                "{target} has been stable before: {nodes} go to it without stages, within maxUnavailable"
            ),
            Course::Held => format!(
                "{target} has failed before and is held: no node gets it until kennel rollout retry"
            ),
            Course::Unstaged => format!(
                "no rollout policy: {nodes} get it in one go, within maxUnavailable; \
                 the annotation rollout.kennel.dev/stages makes stages"
            ),
        }
    }

    /// When it can end.
    fn end(&self) -> String {
        if self.stages.is_empty() {
            return String::new();
        }
        let bakes = Go(Duration::from_secs(self.at_least_seconds));
        let mut out = match (self.earliest_end, self.at_least_seconds) {
            (_, 0) => "\nNo bakes: it ends as soon as all nodes are healthy".to_owned(),
            (Some(end), _) => format!("\nEarliest end: {end} ({bakes} of bakes)"),
            (None, _) => format!("\nEarliest end: {bakes} after its start (bakes)"),
        };
        let stages: Vec<String> = self.promotions.iter().map(ToString::to_string).collect();
        match stages.as_slice() {
            [] => {}
            [one] => {
                let _ = write!(out, "; stage {one} waits for kennel rollout promote");
            }
            many => {
                let _ = write!(
                    out,
                    "; stages {} wait for kennel rollout promote",
                    many.join(", ")
                );
            }
        }
        out.push_str(".\n");
        out
    }
}

fn course(outline: &Outline<'_>, changes: bool) -> Course {
    let Some(policy) = &outline.policy else {
        return Course::Unstaged;
    };
    let first = outline.stable.is_none() && !outline.nodes.iter().any(|node| node.on_target);
    match outline.standing {
        Standing::Direct if changes => Course::Direct,
        Standing::Direct => Course::Next,
        Standing::Back => Course::Held,
        Standing::Staged => Course::Present,
        Standing::Unstarted if first && !policy.stages_on_create => Course::FirstCreation,
        Standing::Unstarted => Course::New,
    }
}

/// Which nodes have had their turn, stage by stage.
struct Turns {
    /// They have the target or lie up to the cut.
    admitted: Vec<bool>,
    /// The last stage takes them by label, and they are down: their turn ends with the stage (R3.7).
    passing: Vec<bool>,
}

impl Turns {
    fn has(&self, node: usize) -> bool {
        self.admitted[node] || self.passing[node]
    }

    fn count(&self) -> usize {
        let nodes = 0..self.admitted.len();
        nodes.filter(|node| self.has(*node)).count()
    }

    /// A stage begins that takes these nodes. Returns those that it adds, and those that are down.
    fn begin(
        &mut self,
        outline: &Outline<'_>,
        stage: &Stage,
        course: Course,
        takes: impl Fn(usize) -> bool,
    ) -> (Vec<usize>, Vec<usize>) {
        let by_label = matches!(stage.size, Size::Nodes(_));
        // Of the next revision no node has a pod yet.
        let has_pods = matches!(course, Course::New | Course::Present);
        let awaits = |node: usize| {
            let node = &outline.nodes[node];
            by_label && node.awaits_return && !(has_pods && node.on_target)
        };
        let taken = (0..self.admitted.len()).filter(|node| !self.admitted[*node] && takes(*node));
        let (down, adds): (Vec<usize>, Vec<usize>) = taken.partition(|node| awaits(*node));
        self.passing.fill(false);
        for node in &down {
            self.passing[*node] = true;
        }
        for node in &adds {
            self.admitted[*node] = true;
        }
        (adds, down)
    }
}

/// The stages with their nodes. Of a rollout under way, nodes that are admitted belong to the present stage or an
/// earlier one.
pub(super) fn planned(outline: &Outline<'_>, policy: &Policy, course: Course) -> Vec<PlannedStage> {
    let is_present = course == Course::Present;
    let present = outline.state().filter(|_| is_present);
    let present = present.map_or(0, |state| state.stage.min(policy.stages.len()));
    let mut turns = Turns {
        admitted: vec![false; outline.nodes.len()],
        passing: vec![false; outline.nodes.len()],
    };
    let mut stages = Vec::new();
    for (index, stage) in policy.stages.iter().enumerate() {
        let number = index + 1;
        let takes = |node: usize| -> bool {
            let had_its_turn = outline.nodes[node].admitted;
            match number.cmp(&present) {
                std::cmp::Ordering::Less => had_its_turn && reaches(outline, stage, node),
                std::cmp::Ordering::Equal => had_its_turn || reaches(outline, stage, node),
                std::cmp::Ordering::Greater => reaches(outline, stage, node),
            }
        };
        let begins = number <= present || adds(outline, stage, &turns);
        let (new, down) = if begins {
            turns.begin(outline, stage, course, takes)
        } else {
            (Vec::new(), Vec::new())
        };
        let passed = !begins || (number < present && new.is_empty());
        let state = match number.cmp(&present) {
            std::cmp::Ordering::Equal => StageState::Present,
            _ if passed => StageState::PassedOver,
            std::cmp::Ordering::Less => StageState::Done,
            std::cmp::Ordering::Greater => StageState::Ahead,
        };
        let names = |nodes: &[usize]| {
            let names = nodes.iter().map(|node| &outline.nodes[*node].view.name);
            names.map(ToString::to_string).collect()
        };
        stages.push(PlannedStage {
            stage: number,
            policy: stage.to_string(),
            state,
            reaches: turns.count(),
            bake_seconds: stage.bake.as_secs(),
            manual: stage.manual,
            nodes: names(&new),
            down: names(&down),
        });
    }
    stages
}

/// Whether a node belongs to a stage. Nodes are in order, so those up to a cut are the first ones.
fn reaches(outline: &Outline<'_>, stage: &Stage, node: usize) -> bool {
    let total = i64::try_from(outline.nodes.len()).unwrap_or(i64::MAX);
    match stage.size.of(total) {
        Some(size) => usize::try_from(size).is_ok_and(|size| node < size),
        None => is_selected(Some(&stage.size), outline.nodes[node].view),
    }
}

/// Whether a stage adds a node, or waits for one (R3.8).
fn adds(outline: &Outline<'_>, stage: &Stage, turns: &Turns) -> bool {
    let nodes = 0..outline.nodes.len();
    match &stage.size {
        Size::Count(_) => {
            let total = i64::try_from(outline.nodes.len()).unwrap_or(i64::MAX);
            let size = stage
                .size
                .of(total)
                .and_then(|size| usize::try_from(size).ok());
            size.is_some_and(|size| size > turns.count())
        }
        Size::Nodes(_) => {
            let mut selected = nodes
                .filter(|node| reaches(outline, stage, *node))
                .peekable();
            selected.peek().is_none() || selected.any(|node| !turns.has(node))
        }
    }
}

fn is_ahead(stage: &PlannedStage) -> bool {
    matches!(stage.state, StageState::Ahead | StageState::Present)
}

/// How much of all bakes is left.
pub(super) fn bakes_left(
    outline: &Outline<'_>,
    course: Course,
    stages: &[PlannedStage],
) -> Duration {
    let ahead = stages.iter().filter(|stage| is_ahead(stage));
    ahead.map(|stage| bake_left(outline, course, stage)).sum()
}

/// How much of a stage's bake is left.
pub(super) fn bake_left(outline: &Outline<'_>, course: Course, stage: &PlannedStage) -> Duration {
    let bake = Duration::from_secs(stage.bake_seconds);
    let state = outline.state().filter(|_| course == Course::Present);
    let Some(state) = state.filter(|state| state.stage == stage.stage) else {
        return bake;
    };
    match state.phase {
        Phase::Baking => bake.saturating_sub(outline.now.saturating_since(state.since)),
        Phase::AwaitingPromotion | Phase::Complete | Phase::Held => Duration::ZERO,
        Phase::Updating | Phase::Paused | Phase::RollingBack => bake,
    }
}

fn notes(outline: &Outline<'_>, stages: &[PlannedStage]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Setting::Invalid(error) = &outline.setting {
        notes.push(format!(
            "nothing is rolled out until this is corrected: {error}"
        ));
    }
    if let Some(reason) = &outline.commands.freeze {
        notes.push(format!(
            "it is frozen ({reason}); kennel rollout resume goes on"
        ));
    } else if let Some(reason) = &outline.commands.pause {
        notes.push(format!(
            "it is paused ({reason}); kennel rollout resume goes on"
        ));
    }
    let down = outline.nodes.iter().filter(|node| node.down).count();
    if down > 0 && !stages.is_empty() {
        let verb = if down == 1 { "is" } else { "are" };
        notes.push(format!(
            "{} of them {verb} down at present",
            nodes_text(down)
        ));
    }
    notes
}
