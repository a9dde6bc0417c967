//! The changes of each node.

use kennel_core::picture::CellState;

use super::Change;

/// By node: when it got which state, the first at 0.
pub struct Spans(Vec<Vec<(u64, u8)>>);

impl Spans {
    /// `changes` are in the order of time.
    pub fn of(initial: &[u8], changes: &[Change]) -> Self {
        let mut nodes: Vec<Vec<(u64, u8)>> = initial.iter().map(|l| vec![(0, *l)]).collect();
        for change in changes {
            if let Some(node) = nodes.get_mut(change.node) {
                node.push((change.at, change.letter));
            }
        }
        Self(nodes)
    }

    /// When this node got which state.
    pub fn node(&self, node: usize) -> &[(u64, u8)] {
        self.0.get(node).map_or(&[], Vec::as_slice)
    }

    /// The state of a node at a time.
    pub fn letter(&self, node: usize, at: u64) -> u8 {
        let spans = self.node(node);
        let before = spans.partition_point(|(from, _)| *from <= at);
        spans[..before].last().map_or(b'-', |(_, letter)| *letter)
    }

    /// How long each node took from its first change to its first available pod of the target.
    pub fn update_times(&self) -> Vec<u64> {
        let new = CellState::New.letter();
        let of_node = |spans: &Vec<(u64, u8)>| {
            let (_, first) = spans.first()?;
            let start = spans.iter().find(|(_, letter)| letter != first)?;
            let end = spans.iter().find(|(_, letter)| *letter == new)?;
            (*first != new).then(|| end.0.saturating_sub(start.0))
        };
        self.0.iter().filter_map(of_node).collect()
    }
}
