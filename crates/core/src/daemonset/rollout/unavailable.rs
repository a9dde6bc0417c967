//! Delete, then create: `maxSurge` is 0 (rule 5.4).

use super::super::member::{Role, Scene, Verdict, Why};
use super::Pair;

pub(super) fn judge(scene: &Scene, pair: &Pair, verdict: &mut Verdict) {
    let now = scene.now;
    verdict.burden.unavailable = true;
    if pair.ambiguous {
        return;
    }
    match (pair.has_new, pair.old) {
        (false, None) | (true, Some(_)) => {}
        (true, None) => verdict.burden.unavailable = !pair.new_is_available(now),
        // No budget is needed for what does not work anyway.
        (false, Some(old)) if !old.available(now) => verdict.doom(old, Why::Plain, now),
        (false, Some(old)) => {
            verdict.burden.unavailable = false;
            if old.held_until <= now {
                verdict.role = Role::Candidate(old.id);
            }
        }
    }
}
