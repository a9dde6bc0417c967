//! The order in which a picture shows nodes.

use kennel_core::natural;
use kennel_core::picture::{CellState, Nodes, Picture};
use kennel_types::Timestamp;

/// The indexes of all nodes: in the order in which stages take them, if there is a policy, else in that of their names; those
/// that are not eligible last.
pub fn order(picture: &Picture, nodes: &Nodes, now: Timestamp) -> Vec<usize> {
    let mut indexes = picture.outline(nodes, now, |outline| {
        let staged = outline.policy.is_some();
        let turn = outline.nodes.iter().filter(|_| staged);
        let turn = turn.filter_map(|node| nodes.index(&node.view.name));
        turn.collect::<Vec<usize>>()
    });
    let mut taken = vec![false; nodes.len()];
    for index in &indexes {
        taken[*index] = true;
    }
    let mut others: Vec<(usize, bool, &str)> = nodes
        .iter()
        .filter(|(index, _)| !taken[*index])
        .map(|(index, view)| {
            let state = picture.state(index);
            let excluded = state == Some(CellState::NotEligible);
            (index, excluded, &*view.name)
        })
        .collect();
    others.sort_by(|(_, a_excluded, a), (_, b_excluded, b)| {
        a_excluded
            .cmp(b_excluded)
            .then_with(|| natural::compare(a, b))
    });
    indexes.extend(others.into_iter().map(|(index, ..)| index));
    indexes
}
