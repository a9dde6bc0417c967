//! Single objects, revisions and lists.

use super::*;

#[test]
fn one_client_after_another() {
    let (first, second) = (whole("u", 5, 1), whole("u", 6, 2));
    let third = merged("u", 7, 2, 3);
    let again = whole("v", 9, 4);
    let mut history = history(&[
        create(&first, (1, 2)),
        update(&first, &second, (3, 4)),
        operation(replace(&first, 9), Answer::Conflict, (5, 6)),
        patch(&third, (7, 8)),
        get(&third, (9, 10)),
        operation(Call::Create { token: 8 }, Answer::Exists, (11, 12)),
        delete((13, 14)),
        get_nothing((15, 16)),
        operation(any_delete(), Answer::NotFound, (17, 18)),
        create(&again, (19, 20)),
    ]);
    history.lists.push(list(9, &[&again], (21, 22)));
    let figures = right(&history);
    assert_eq!((figures.operations, figures.lists), (10, 1));
}

#[test]
fn concurrent_operations_in_the_order_that_explains_them() {
    let (first, second) = (whole("u", 5, 1), whole("u", 6, 2));
    // The reads overlap the update; the later one may still see the older state only if the earlier one does.
    let base = [create(&first, (1, 2)), update(&first, &second, (3, 20))];
    let with = |reads: [Operation; 2]| history(&[&base[..], &reads].concat());
    right(&with([get(&first, (4, 5)), get(&second, (6, 7))]));
    right(&with([get(&first, (4, 10)), get(&second, (6, 7))]));
    wrong(
        &with([get(&second, (4, 5)), get(&first, (6, 7))]),
        Rule::Linearizability,
    );
}

#[test]
fn a_stale_read_is_found() {
    let (first, second) = (whole("u", 5, 1), whole("u", 6, 2));
    let stale = [
        create(&first, (1, 2)),
        update(&first, &second, (3, 4)),
        get(&first, (5, 6)),
    ];
    wrong(&history(&stale), Rule::Linearizability);
}

#[test]
fn a_lost_update_is_found() {
    let (first, second, third) = (whole("u", 5, 1), whole("u", 6, 2), whole("u", 7, 3));
    // Both replaced the same revision.
    let both = [
        create(&first, (1, 2)),
        update(&first, &second, (3, 10)),
        update(&first, &third, (3, 10)),
    ];
    wrong(&history(&both), Rule::Linearizability);
    // A patch was merged into a state that had been replaced.
    let stale_patch = merged("u", 7, 1, 4);
    let patched = [
        create(&first, (1, 2)),
        update(&first, &second, (3, 4)),
        patch(&stale_patch, (5, 6)),
    ];
    wrong(&history(&patched), Rule::Linearizability);
}

#[test]
fn a_resurrected_object_is_found() {
    let first = whole("u", 5, 1);
    let back = [
        create(&first, (1, 2)),
        delete((3, 4)),
        get_nothing((5, 6)),
        get(&first, (7, 8)),
    ];
    wrong(&history(&back), Rule::Linearizability);
}

#[test]
fn a_create_that_succeeds_twice_is_found() {
    let both = [
        create(&whole("u", 5, 1), (1, 10)),
        create(&whole("v", 6, 2), (1, 10)),
    ];
    wrong(&history(&both), Rule::Linearizability);
}

#[test]
fn a_lost_acknowledged_write_is_found() {
    let lost = [create(&whole("u", 5, 1), (1, 2)), get_nothing((3, 4))];
    wrong(&history(&lost), Rule::Linearizability);
    let (first, second) = (whole("u", 5, 1), whole("u", 6, 2));
    let lost = [
        create(&first, (1, 2)),
        update(&first, &second, (3, 4)),
        operation(replace(&second, 3), Answer::Conflict, (5, 6)),
    ];
    wrong(&history(&lost), Rule::Linearizability);
}

#[test]
fn preconditions_must_hold() {
    let first = whole("u", 5, 1);
    let checked = |uid: &str, answer| {
        let uid = Some(uid.into());
        let call = Call::Delete {
            uid,
            revision: Some(5),
        };
        history(&[create(&first, (1, 2)), operation(call, answer, (3, 4))])
    };
    right(&checked("u", Answer::Deleted));
    right(&checked("v", Answer::Conflict));
    wrong(&checked("v", Answer::Deleted), Rule::Linearizability);
    wrong(&checked("u", Answer::Conflict), Rule::Linearizability);
}

#[test]
fn an_unanswered_write_took_effect_or_did_not() {
    let first = whole("u", 5, 1);
    let unknown = |call, by| operation(call, Answer::Unknown, (3, by));
    let patch = Call::Patch {
        token: 2,
        revision: None,
    };
    let with = |call: &Call, by, after: &[Operation]| {
        history(&[&[create(&first, (1, 2)), unknown(call.clone(), by)], after].concat())
    };
    right(&with(&any_delete(), NEVER, &[get(&first, (9, 10))]));
    right(&with(&any_delete(), NEVER, &[get_nothing((9, 10))]));
    // Late, but not after the process that it was sent to.
    let late = [get(&first, (9, 10)), get_nothing((11, 12))];
    right(&with(&any_delete(), NEVER, &late));
    wrong(&with(&any_delete(), 8, &late), Rule::Linearizability);
    // Somebody saw it, so that it cannot vanish.
    let patched = merged("u", 6, 1, 2);
    let seen = [get(&patched, (9, 10)), get(&patched, (11, 12))];
    let figures = right(&with(&patch, NEVER, &seen));
    assert_eq!((figures.unknown, figures.unknown_seen), (1, 1));
    let vanished = [get(&patched, (9, 10)), get(&first, (11, 12))];
    wrong(&with(&patch, NEVER, &vanished), Rule::Linearizability);
    // Nobody saw it, but it made a revision stale.
    let stale = operation(replace(&first, 7), Answer::Conflict, (9, 10));
    right(&with(&patch, NEVER, &[stale]));
}

#[test]
fn what_nobody_wrote_is_found() {
    let first = whole("u", 5, 1);
    let invented = [create(&first, (1, 2)), get(&whole("u", 6, 77), (3, 4))];
    wrong(&history(&invented), Rule::Content);
    let early = [create(&first, (5, 8)), get(&first, (1, 2))];
    wrong(&history(&early), Rule::Content);
    let twice = [create(&first, (1, 2)), get(&whole("u", 6, 1), (3, 4))];
    wrong(&history(&twice), Rule::Content);
}

#[test]
fn revisions_follow_real_time_over_all_objects() {
    let other = Operation {
        key: "b".to_owned(),
        ..create(&whole("v", 4, 2), (3, 4))
    };
    let back = [create(&whole("u", 5, 1), (1, 2)), other.clone()];
    wrong(&history(&back), Rule::Revision);
    let concurrent = [create(&whole("u", 5, 1), (1, 3)), other];
    right(&history(&concurrent));
    let twice = Operation {
        key: "b".to_owned(),
        ..create(&whole("v", 5, 2), (1, 4))
    };
    let same = [create(&whole("u", 5, 1), (1, 4)), twice];
    wrong(&history(&same), Rule::Revision);
}

#[test]
fn a_list_is_a_snapshot() {
    let (first, second) = (whole("u", 5, 1), whole("u", 7, 2));
    let with = |list: List| {
        let operations = [create(&first, (1, 2)), update(&first, &second, (3, 20))];
        History {
            lists: vec![list],
            ..history(&operations)
        }
    };
    right(&with(list(5, &[&first], (4, 6))));
    right(&with(list(6, &[&first], (4, 6))));
    right(&with(list(7, &[&second], (4, 6))));
    // Its revision covers a write that it does not show, or the other way round.
    wrong(&with(list(7, &[&first], (4, 6))), Rule::List);
    wrong(&with(list(6, &[&second], (4, 6))), Rule::List);
    // It is older than what was acknowledged before, or from the future.
    wrong(&with(list(4, &[], (4, 6))), Rule::List);
    wrong(&with(list(6, &[&first], (21, 22))), Rule::List);
    let mut early = with(list(7, &[], (1, 2)));
    early.operations.remove(0);
    wrong(&early, Rule::List);
    // It reads each object.
    wrong(&with(list(5, &[], (4, 6))), Rule::Linearizability);
}
