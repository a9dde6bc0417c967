//! Create, then delete: `maxSurge` is not 0 (rule 5.5).

use super::super::manage::may_create;
use super::super::member::{Role, Scene, Verdict, Why};
use super::Pair;

pub(super) fn judge(scene: &Scene, pair: &Pair, verdict: &mut Verdict) {
    let now = scene.now;
    if pair.ambiguous {
        verdict.burden.surge = true;
        return;
    }
    let counted = pair.old.or(pair.new);
    verdict.burden.available = counted.is_some_and(|pod| pod.available(now));
    let Some(old) = pair.old else {
        return;
    };
    if pair.has_new {
        if pair.new_is_available(now) {
            verdict.doom(old, Why::Plain, now);
        } else {
            verdict.burden.surge = true;
        }
        return;
    }
    // Upstream gives up the whole step for one old pod of a vanished node; its collector comes.
    let Some(fit) = scene.fit else {
        return;
    };
    match (fit.run, old.available(now)) {
        (true, false) => verdict.create |= may_create(scene),
        (true, true) if may_create(scene) && scene.create_held_until <= now => {
            verdict.role = Role::Candidate(old.id);
        }
        (true, true) => {}
        (false, false) => verdict.doom(old, Why::Plain, now),
        (false, true) if old.held_until <= now => verdict.role = Role::Leaving(old.id),
        (false, true) => {}
    }
}
