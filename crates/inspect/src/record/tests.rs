//! States over time.

use super::{Change, Durations, Spans};

#[test]
fn the_state_of_a_node_is_known_at_each_moment() {
    let change = |at, node, letter| Change { at, node, letter };
    let changes = [
        change(10, 1, b'u'),
        change(20, 1, b'f'),
        change(30, 1, b'n'),
        change(40, 2, b'u'),
    ];
    let spans = Spans::of(b"wwwn", &changes);
    let at = |time: u64| -> String {
        let letters = (0..4).map(|node| char::from(spans.letter(node, time)));
        letters.collect()
    };
    assert_eq!(at(0), "wwwn");
    assert_eq!(at(10), "wuwn");
    assert_eq!(at(29), "wfwn");
    assert_eq!(at(99), "wnun");
    // From the first change to the new pod; a node that had it already does not count.
    assert_eq!(spans.update_times(), [20]);
}

#[test]
fn durations_are_of_the_nodes_that_were_updated() {
    assert_eq!(Durations::of(Vec::new()), Durations::default());
    let durations = Durations::of((1..=100).rev().collect());
    let Durations {
        nodes,
        shortest,
        median,
        p95,
        longest,
    } = durations;
    assert_eq!(
        (nodes, shortest, median, p95, longest),
        (100, 1, 50, 95, 100)
    );
}
