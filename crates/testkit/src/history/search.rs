//! Whether some order of the operations on one object explains their answers: the search of Wing and Gong, which remembers
//! the sets of operations that it has placed, with the states that they led to, as Lowe proposed and Porcupine does.

use std::collections::{BTreeMap, HashSet};

use super::object::State;
use super::{Answer, Call, History, Instant, Operation, Rule};

/// Configurations that are visited before the search is given up: this many, and more for each operation.
const VISITS_MIN: usize = 100_000;
const VISITS_PER_OPERATION: usize = 50;
/// Operations that a failure shows before the place where the search got stuck.
const SHOWN: usize = 8;

/// No order explains the answers, or none was found.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) rule: Rule,
    pub(super) detail: String,
}

/// The operations on each object. Lists read each of them.
pub(super) fn partition(
    history: &History,
    operations: Vec<Operation>,
) -> BTreeMap<String, Vec<Operation>> {
    let mut by_key: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        let key = operation.key.clone();
        by_key.entry(key).or_default().push(operation);
    }
    for list in history.all_lists() {
        for (key, operations) in &mut by_key {
            let seen = list.objects.get(key).cloned();
            operations.push(Operation {
                client: list.client,
                key: key.clone(),
                call: Call::Get,
                answer: seen.map_or(Answer::NotFound, Answer::Shown),
                invoked: list.invoked,
                returned: list.returned,
            });
        }
    }
    by_key
}

/// Which operations are placed, and the state that they led to. The state depends on their order, so it is part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Placed {
    /// The first so many answered operations are placed …
    prefix: usize,
    /// … and these of those behind, in ascending order.
    beyond: Vec<usize>,
    /// The unanswered ones that took effect, in ascending order.
    unanswered: Vec<usize>,
    state: State,
}

/// A configuration, and what is left to try after it.
struct Frame {
    placed: Placed,
    /// The latest beginning of all operations that are placed.
    latest: Instant,
    /// Candidates, the last one first.
    next: Vec<Candidate>,
    by: Option<Candidate>,
}

#[derive(Clone, Copy, Debug)]
enum Candidate {
    Answered(usize),
    Unanswered(usize),
}

struct Search<'a> {
    answered: Vec<&'a Operation>,
    unanswered: Vec<&'a Operation>,
}

/// Returns how many configurations were visited.
pub(super) fn linearize(operations: &[Operation]) -> Result<usize, Failure> {
    let (mut unanswered, mut answered): (Vec<_>, Vec<_>) = operations
        .iter()
        .partition(|operation| operation.answer == Answer::Unknown);
    answered.sort_by_key(|operation| operation.invoked);
    unanswered.sort_by_key(|operation| operation.invoked);
    Search {
        answered,
        unanswered,
    }
    .run()
}

impl Search<'_> {
    fn run(&self) -> Result<usize, Failure> {
        let visits_max = VISITS_MIN + VISITS_PER_OPERATION * self.answered.len();
        let mut visited = HashSet::new();
        let mut stack = vec![self.frame(Placed::default(), 0, None)];
        let mut deepest: (usize, String) = (0, String::new());
        while let Some(frame) = stack.last_mut() {
            if frame.placed.prefix == self.answered.len() {
                return Ok(visited.len());
            }
            let Some(candidate) = frame.next.pop() else {
                let depth = stack.len();
                if depth > deepest.0 {
                    deepest = (depth, self.describe(&stack));
                }
                stack.pop();
                continue;
            };
            let latest = frame.latest;
            let Some(placed) = self.place(&frame.placed, candidate) else {
                continue;
            };
            if visited.len() > visits_max {
                return Err(Failure {
                    rule: Rule::Undecided,
                    detail: self.describe(&stack),
                });
            }
            if visited.insert(placed.clone()) {
                let latest = latest.max(self.operation(candidate).invoked);
                stack.push(self.frame(placed, latest, Some(candidate)));
            }
        }
        Err(Failure {
            rule: Rule::Linearizability,
            detail: deepest.1,
        })
    }

    fn operation(&self, candidate: Candidate) -> &Operation {
        match candidate {
            Candidate::Answered(index) => self.answered[index],
            Candidate::Unanswered(index) => self.unanswered[index],
        }
    }

    /// What may come next: everything that began before all that is left had ended. What has no answer comes last, because it
    /// need not have happened.
    fn frame(&self, placed: Placed, latest: Instant, by: Option<Candidate>) -> Frame {
        let mut ends = Instant::MAX;
        let mut open = Vec::new();
        for index in placed.prefix..self.answered.len() {
            let operation = self.answered[index];
            if operation.invoked > ends {
                break;
            }
            if placed.beyond.binary_search(&index).is_err() {
                ends = ends.min(operation.returned);
                open.push(index);
            }
        }
        open.retain(|index| self.answered[*index].invoked <= ends);
        let pending = 0..self.unanswered.len();
        let pending = pending.filter(|index| {
            let operation = self.unanswered[*index];
            let in_time = operation.invoked <= ends && operation.returned >= latest;
            in_time && placed.unanswered.binary_search(index).is_err()
        });
        let mut next: Vec<Candidate> = pending.map(Candidate::Unanswered).collect();
        next.extend(open.into_iter().rev().map(Candidate::Answered));
        Frame {
            placed,
            latest,
            next,
            by,
        }
    }

    fn place(&self, placed: &Placed, candidate: Candidate) -> Option<Placed> {
        let state = placed.state.after(self.operation(candidate))?;
        let mut placed = Placed {
            state,
            ..placed.clone()
        };
        match candidate {
            Candidate::Unanswered(index) => insert(&mut placed.unanswered, index),
            Candidate::Answered(index) => insert(&mut placed.beyond, index),
        }
        while placed.beyond.first() == Some(&placed.prefix) {
            placed.beyond.remove(0);
            placed.prefix += 1;
        }
        Some(placed)
    }

    /// The last operations that were placed, and those that none could follow.
    fn describe(&self, stack: &[Frame]) -> String {
        let placed = stack.last().map_or(0, |frame| frame.placed.prefix);
        let count = self.answered.len();
        let mut lines = vec![format!(
            "{placed} of {count} can be ordered; the last ones are"
        )];
        let from = stack.len().saturating_sub(SHOWN);
        let placed = stack[from..].iter().filter_map(|frame| frame.by);
        lines.extend(placed.map(|by| format!("  {:?}", self.operation(by))));
        if let Some(frame) = stack.last() {
            lines.push(format!("the object was {:?}; none of", frame.placed.state));
            let left = self.frame(frame.placed.clone(), frame.latest, None).next;
            let left = left.iter().rev().take(SHOWN);
            lines.extend(left.map(|next| format!("  {:?}", self.operation(*next))));
            lines.push("fits".to_owned());
        }
        lines.join("\n")
    }
}

fn insert(sorted: &mut Vec<usize>, index: usize) {
    if let Err(place) = sorted.binary_search(&index) {
        sorted.insert(place, index);
    }
}
