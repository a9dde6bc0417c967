//! Watches.

use super::*;

fn first() -> Seen {
    whole("u", 5, 1)
}

fn second() -> Seen {
    whole("u", 6, 2)
}

/// Created at 5, replaced at 6, deleted at 7, created again at 9; something else is written at 10.
fn operations() -> Vec<Operation> {
    vec![
        create(&first(), (1, 2)),
        update(&first(), &second(), (3, 4)),
        delete((5, 6)),
        create(&whole("v", 9, 3), (7, 8)),
    ]
}

fn event(kind: Kind, seen: Seen) -> Step {
    Step::Event {
        kind,
        key: KEY.to_owned(),
        seen,
        at: 90,
    }
}

fn bookmark(revision: Revision) -> Step {
    Step::Bookmark { revision, at: 90 }
}

/// What a watcher sees that lists at 4 and goes on after a bookmark at 8.
fn steps() -> Vec<Step> {
    vec![
        Step::Listed(list(4, &[], (0, 1))),
        Step::Connected { after: 4 },
        event(Kind::Added, first()),
        event(Kind::Modified, second()),
        event(Kind::Deleted, whole("u", 7, 2)),
        bookmark(8),
        Step::Connected { after: 8 },
        event(Kind::Added, whole("v", 9, 3)),
        bookmark(10),
    ]
}

/// The history with another watch.
fn watched(change: impl FnOnce(&mut Vec<Step>)) -> History {
    let mut steps = steps();
    change(&mut steps);
    let stream = Stream {
        watcher: 1,
        only: None,
        steps,
    };
    let whole = Stream {
        watcher: 0,
        ..stream.clone()
    };
    let whole = Stream {
        steps: self::steps(),
        ..whole
    };
    History {
        streams: vec![whole, stream],
        ..history(&operations())
    }
}

#[test]
fn a_complete_watch_is_right() {
    let figures = right(&watched(|_| ()));
    assert_eq!(
        (figures.events, figures.bookmarks, figures.connections),
        (8, 4, 4)
    );
}

#[test]
fn a_gap_is_found() {
    wrong(&watched(|steps| drop(steps.remove(3))), Rule::WatchGap);
}

#[test]
fn a_duplicate_is_found() {
    wrong(
        &watched(|steps| steps.insert(3, steps[2].clone())),
        Rule::WatchOrder,
    );
    // Again after a reconnect.
    wrong(
        &watched(|steps| steps.insert(7, steps[4].clone())),
        Rule::WatchOrder,
    );
}

#[test]
fn events_out_of_order_are_found() {
    wrong(&watched(|steps| steps.swap(2, 3)), Rule::WatchOrder);
}

#[test]
fn an_untrue_bookmark_is_found() {
    // It covers an event that comes later.
    let early = watched(|steps| steps.insert(4, bookmark(8)));
    wrong(&early, Rule::Bookmark);
    wrong(&early, Rule::WatchOrder);
    wrong(&watched(|steps| steps[8] = bookmark(8)), Rule::WatchOrder);
    // It covers an event that never comes.
    wrong(&watched(|steps| drop(steps.remove(7))), Rule::Bookmark);
}

#[test]
fn wrong_types_and_objects_are_found() {
    let second_is = |kind, seen: Seen| watched(|steps| steps[3] = event(kind, seen));
    wrong(&second_is(Kind::Added, second()), Rule::WatchType);
    wrong(&second_is(Kind::Deleted, whole("u", 6, 1)), Rule::Revision);
    wrong(
        &second_is(Kind::Modified, whole("w", 6, 2)),
        Rule::WatchType,
    );
    wrong(&second_is(Kind::Modified, whole("u", 6, 66)), Rule::Content);
    // A deletion shows what was deleted.
    let stale = watched(|steps| steps[4] = event(Kind::Deleted, whole("u", 7, 1)));
    wrong(&stale, Rule::WatchType);
}

#[test]
fn a_later_state_that_is_older_is_found() {
    let back = watched(|steps| {
        steps.truncate(7);
        steps[6] = Step::Listed(list(6, &[&second()], (30, 31)));
    });
    wrong(&back, Rule::WatchOrder);
    wrong(&back, Rule::List);
}

#[test]
fn a_list_that_misses_an_object_is_found_with_a_watch() {
    let mut history = watched(|_| ());
    history.lists.push(list(10, &[], (7, 8)));
    wrong(&history, Rule::List);
    // Without one, the object may have been deleted meanwhile.
    history.streams.clear();
    let figures = right(&history);
    assert_eq!(figures.unjudged, 1);
}

#[test]
fn a_watch_of_one_object_misses_nothing_of_others() {
    let mut history = watched(|_| ());
    history.operations.push(Operation {
        key: "b".to_owned(),
        ..create(&whole("w", 8, 4), (6, 7))
    });
    let only_a = |stream: &mut Stream| stream.only = Some(KEY.to_owned());
    history.streams.iter_mut().for_each(only_a);
    right(&history);
    history.streams[0].only = None;
    wrong(&history, Rule::Bookmark);
}
