//! How many nodes are in each state.

use std::ops::{AddAssign, Index};

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::cell::CellState;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; CellState::ALL.len()]);

impl Counts {
    pub fn get(&self, state: CellState) -> usize {
        self.0[state as usize]
    }

    /// All nodes.
    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }

    /// Those in which the DaemonSet should have a pod.
    pub fn eligible(&self) -> usize {
        self.total() - self.get(CellState::NotEligible)
    }

    /// Of the states of a picture's letters.
    pub fn of_letters(letters: &[u8]) -> Self {
        let mut counts = Self::default();
        for state in letters.iter().filter_map(|l| CellState::of_letter(*l)) {
            counts.add(state);
        }
        counts
    }

    pub(super) fn add(&mut self, state: CellState) {
        self.0[state as usize] += 1;
    }

    pub(super) fn remove(&mut self, state: CellState) {
        self.0[state as usize] -= 1;
    }
}

impl Index<CellState> for Counts {
    type Output = usize;

    fn index(&self, state: CellState) -> &usize {
        &self.0[state as usize]
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
    }
}

/// An object with a number for each state.
impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for state in CellState::ALL {
            map.serialize_entry(&state, &self.get(state))?;
        }
        map.end()
    }
}
