//! The planner's options.

use super::pod::Placement;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub placement: Placement,
    pub pace: Pace,
    /// Another controller creates the pods and revisions (R11): only pods of staged rollouts are deleted, and only states
    /// and conditions are written.
    pub assist: bool,
}

/// How many pods of one DaemonSet are created and deleted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// No limit: for an API server that throttles its clients itself. After a failed creation the planner continues as
    /// with [`SlowStart`](Self::SlowStart) until a batch succeeds.
    #[default]
    Unlimited,
    /// As upstream (rule 3.7): creations in batches of 1, 2, 4, …, each after the one before has succeeded, and at most
    /// 250 creations and 250 deletions at once.
    SlowStart,
}
