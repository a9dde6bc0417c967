//! Histories that are right, and histories that each break one rule: the checker must tell them apart.

mod objects;
mod watches;

use std::collections::BTreeMap;

use super::*;

const KEY: &str = "a";

/// An object of a write that set both tokens.
fn whole(uid: &str, revision: Revision, token: Token) -> Seen {
    merged(uid, revision, token, token)
}

fn merged(uid: &str, revision: Revision, base: Token, last: Token) -> Seen {
    Seen {
        uid: uid.into(),
        revision,
        content: Content { base, last },
    }
}

/// An operation on the one object between two instants.
fn operation(call: Call, answer: Answer, between: (Instant, Instant)) -> Operation {
    Operation {
        client: 0,
        key: KEY.to_owned(),
        call,
        answer,
        invoked: between.0,
        returned: between.1,
    }
}

fn create(seen: &Seen, between: (Instant, Instant)) -> Operation {
    let token = seen.content.last;
    operation(Call::Create { token }, Answer::Shown(seen.clone()), between)
}

fn update(from: &Seen, to: &Seen, between: (Instant, Instant)) -> Operation {
    operation(
        replace(from, to.content.last),
        Answer::Shown(to.clone()),
        between,
    )
}

fn replace(from: &Seen, token: Token) -> Call {
    Call::Update {
        token,
        uid: from.uid.clone(),
        revision: from.revision,
    }
}

fn patch(to: &Seen, between: (Instant, Instant)) -> Operation {
    let token = to.content.last;
    let revision = None;
    let call = Call::Patch { token, revision };
    operation(call, Answer::Shown(to.clone()), between)
}

fn delete(between: (Instant, Instant)) -> Operation {
    operation(any_delete(), Answer::Deleted, between)
}

fn any_delete() -> Call {
    Call::Delete {
        uid: None,
        revision: None,
    }
}

fn get(seen: &Seen, between: (Instant, Instant)) -> Operation {
    operation(Call::Get, Answer::Shown(seen.clone()), between)
}

fn get_nothing(between: (Instant, Instant)) -> Operation {
    operation(Call::Get, Answer::NotFound, between)
}

fn list(revision: Revision, objects: &[&Seen], between: (Instant, Instant)) -> List {
    let objects = objects.iter().map(|seen| (KEY.to_owned(), (*seen).clone()));
    List {
        client: 1,
        invoked: between.0,
        returned: between.1,
        revision,
        objects: objects.collect::<BTreeMap<_, _>>(),
    }
}

fn history(operations: &[Operation]) -> History {
    History {
        operations: operations.to_vec(),
        ..History::default()
    }
}

/// Passes if the history is right.
fn right(history: &History) -> Figures {
    check(history).unwrap_or_else(|violations| panic!("{violations:#?}"))
}

/// Passes if the history breaks this rule, perhaps among others.
fn wrong(history: &History, rule: Rule) {
    let violations = check(history).expect_err("this history is wrong");
    let found = violations.iter().any(|violation| violation.rule == rule);
    assert!(found, "no {rule:?} in {violations:#?}");
}
