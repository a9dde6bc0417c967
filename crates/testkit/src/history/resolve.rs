//! What became of writes without an answer: whoever sees such a write knows its revision, and that it took
//! effect before it was seen.

use std::collections::HashMap;

use super::{
    Answer, Call, Figures, History, Instant, Kind, Operation, Rule, Seen, Step, Token, Violation,
};

/// A write as it was first seen.
struct First<'a> {
    key: &'a str,
    seen: &'a Seen,
    at: Instant,
}

/// The operations, with the answers that unknown ones should have had. Those that nobody saw stay unknown.
pub(super) fn resolve(
    history: &History,
    figures: &mut Figures,
    violations: &mut Vec<Violation>,
) -> Vec<Operation> {
    let firsts = first_seen(history, violations);
    let mut operations = history.operations.clone();
    let mut writes = HashMap::new();
    for operation in &mut operations {
        let token = operation.call.token();
        if let Some(token) = token {
            writes.insert(token, (operation.key.clone(), operation.invoked));
        }
        if operation.answer != Answer::Unknown {
            continue;
        }
        figures.unknown += 1;
        if let Some(first) = token.and_then(|token| firsts.get(&token)) {
            figures.unknown_seen += 1;
            operation.answer = Answer::Shown(first.seen.clone());
            operation.returned = operation.returned.min(first.at);
        }
    }
    for (token, first) in &firsts {
        let written = writes.get(token);
        let known = written.is_some_and(|(key, invoked)| key == first.key && *invoked <= first.at);
        if !known {
            let detail = format!(
                "{} with {:?} was seen before anybody wrote it",
                first.key, first.seen
            );
            violations.push(Violation::new(Rule::Content, detail));
        }
    }
    operations
        .retain(|operation| operation.call != Call::Get || operation.answer != Answer::Unknown);
    operations
}

/// The first sight of each write; a second one with another result is a violation.
fn first_seen<'a>(
    history: &'a History,
    violations: &mut Vec<Violation>,
) -> HashMap<Token, First<'a>> {
    let mut firsts: HashMap<Token, First<'a>> = HashMap::new();
    let mut see = |key: &'a str, seen: &'a Seen, at: Instant| {
        let first = firsts.entry(seen.content.last);
        let first = first.or_insert(First { key, seen, at });
        first.at = first.at.min(at);
        if (first.key, first.seen) != (key, seen) {
            let (other, before) = (first.seen, first.key);
            let detail = format!("one write is {before} {other:?} and {key} {seen:?}");
            violations.push(Violation::new(Rule::Content, detail));
        }
    };
    for operation in &history.operations {
        if let Answer::Shown(seen) = &operation.answer {
            see(&operation.key, seen, operation.returned);
        }
    }
    for list in &history.lists {
        for (key, seen) in &list.objects {
            see(key, seen, list.returned);
        }
    }
    for step in history.streams.iter().flat_map(|stream| &stream.steps) {
        match step {
            Step::Listed(list) => {
                for (key, seen) in &list.objects {
                    see(key, seen, list.returned);
                }
            }
            // A deletion has a revision of its own.
            Step::Event {
                kind: Kind::Added | Kind::Modified,
                key,
                seen,
                at,
            } => see(key, seen, *at),
            Step::Event { .. } | Step::Connected { .. } | Step::Bookmark { .. } => {}
        }
    }
    firsts
}
