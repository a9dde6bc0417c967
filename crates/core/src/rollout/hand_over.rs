//! Whether another DaemonSet controller, which knows no stages, may take over.

use super::assess::Outcome;
use super::outline::Outline;
use super::state::Standing;
use super::status::Status;

/// What stands in the way: the other controller would take every node to a template that is not on all of them yet, or
/// has failed.
pub fn obstacle(outline: &Outline<'_>) -> Option<String> {
    let held = outline.standing == Standing::Back;
    // Without a verdict that holds it, the other controller leaves these pods alone, too.
    if outline.daemon_set.strategy.is_on_delete() && !held {
        return None;
    }
    let commands = &outline.commands;
    let is_directed =
        outline.policy.is_some() || commands.pause.is_some() || commands.freeze.is_some();
    let status = Status::of(outline, |_| None);
    (is_directed && status.outcome != Outcome::Complete).then_some(status.message)
}
