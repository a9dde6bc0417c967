//! Revisions and real time: what is written after a revision was seen has a greater one, a list is at least as new as all that was seen
//! before it began, and nothing has a revision before its write began.

use super::{Answer, Call, History, Instant, Operation, Revision, Rule, Step, Violation};

/// A moment from which on a revision is known to exist.
struct Witness {
    at: Instant,
    revision: Revision,
}

pub(super) fn check(history: &History, operations: &[Operation], violations: &mut Vec<Violation>) {
    let known = Known::of(witnesses(history, operations));
    let mut writes = Vec::new();
    for operation in operations {
        let Answer::Shown(seen) = &operation.answer else {
            continue;
        };
        if operation.call == Call::Get {
            continue;
        }
        writes.push((seen.revision, operation.invoked));
        let before = known.before(operation.invoked);
        if seen.revision <= before {
            let detail = format!("{before} was seen before this began: {operation:?}");
            violations.push(Violation::new(Rule::Revision, detail));
        }
    }
    writes.sort_unstable();
    // The latest beginning of all writes up to each revision.
    let mut latest = 0;
    for (_, invoked) in &mut writes {
        latest = latest.max(*invoked);
        *invoked = latest;
    }
    for list in history.all_lists() {
        let (at, client) = (list.revision, list.client);
        let before = known.before(list.invoked);
        if at < before {
            let detail = format!("client {client} got a list at {at} after {before} was seen");
            violations.push(Violation::new(Rule::List, detail));
        }
        let up_to = writes.partition_point(|(revision, _)| *revision <= at);
        let begun = up_to.checked_sub(1).map_or(0, |last| writes[last].1);
        if begun > list.returned {
            let detail = format!("client {client} got a list at {at} before its writes began");
            violations.push(Violation::new(Rule::List, detail));
        }
    }
}

fn witnesses(history: &History, operations: &[Operation]) -> Vec<Witness> {
    let mut all = Vec::new();
    let mut witness = |at, revision| all.push(Witness { at, revision });
    for operation in operations {
        if let Answer::Shown(seen) = &operation.answer {
            witness(operation.returned, seen.revision);
        }
    }
    for list in &history.lists {
        witness(list.returned, list.revision);
    }
    for step in history.streams.iter().flat_map(|stream| &stream.steps) {
        match step {
            Step::Listed(list) => witness(list.returned, list.revision),
            Step::Event { seen, at, .. } => witness(*at, seen.revision),
            Step::Bookmark { revision, at } => witness(*at, *revision),
            Step::Connected { .. } => {}
        }
    }
    all
}

/// The greatest revision that was seen by each moment.
struct Known(Vec<Witness>);

impl Known {
    fn of(mut all: Vec<Witness>) -> Self {
        all.sort_unstable_by_key(|witness| witness.at);
        let mut greatest = 0;
        for witness in &mut all {
            greatest = greatest.max(witness.revision);
            witness.revision = greatest;
        }
        Self(all)
    }

    /// The greatest one before this moment.
    fn before(&self, moment: Instant) -> Revision {
        let count = self.0.partition_point(|witness| witness.at < moment);
        count.checked_sub(1).map_or(0, |last| self.0[last].revision)
    }
}
