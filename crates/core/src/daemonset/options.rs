//! What can be chosen about the planner, once, when it is made.

use super::pod::Placement;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How pods come to their nodes.
    pub placement: Placement,
    /// How fast a DaemonSet's pods are created and deleted.
    pub pace: Pace,
}

/// How many writes for the pods of one DaemonSet may be under way at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As many as there are: for an API server that says itself when it has enough. After a failed
    /// creation it goes on as [`SlowStart`](Self::SlowStart) until all is well again.
    #[default]
    Free,
    /// Upstream's: creations in batches of 1, 2, 4, … each when the last one has ended well, and no
    /// more than 250 creations and 250 deletions under way (rule 3.7).
    SlowStart,
}
