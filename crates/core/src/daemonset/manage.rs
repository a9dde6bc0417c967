//! The decision per node (rules 3.4 to 3.6): is a pod missing, or is one too many?
//!
//! Knows nothing of budgets; what a new template asks for is in [`rollout`](super::rollout).

use super::member::{Member, Scene, Verdict, Why};
use super::view::Phase;

pub(super) fn manage(scene: &Scene, verdict: &mut Verdict) {
    let Some(fit) = scene.fit else {
        // Bound pods of vanished nodes are the pod collector's (rule 3.6).
        let unbound = scene.group.iter().filter(|pod| !pod.bound);
        unbound.for_each(|pod| verdict.doom(pod, Why::Plain, scene.now));
        return;
    };
    if scene.group.is_empty() {
        verdict.create = fit.run && may_create(scene);
    } else if fit.keep {
        tidy(scene, fit.run, verdict);
    } else {
        for pod in scene.group {
            verdict.doom(pod, Why::Plain, scene.now);
        }
    }
}

/// Nothing is under way that will fill the slot.
pub(super) fn may_create(scene: &Scene) -> bool {
    !scene.creating && !scene.adopting
}

fn tidy(scene: &Scene, run: bool, verdict: &mut Verdict) {
    let delayed = ended(scene, verdict);
    let active = |pod: &&Member| !pod.leaves() && pod.phase == Phase::Active;
    let mut active = scene.group.iter().filter(active);
    if scene.conduct.surges {
        let (first, second) = (active.next(), active.next());
        match (first, second) {
            // While failed pods are left alone, no more are made that may fail alike.
            (None, _) => verdict.create = run && !delayed && may_create(scene),
            (Some(_), None) => {}
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(active);
                one_old_and_one_new(scene, all, verdict);
            }
        }
    } else {
        // The first is kept (rule 3.4.2).
        for pod in active.skip(1) {
            verdict.doom(pod, Why::Plain, scene.now);
        }
    }
}

/// Pods that have ended by themselves (rules 3.4.1 and 3.5). True if a failed one is left alone for
/// now.
fn ended(scene: &Scene, verdict: &mut Verdict) -> bool {
    let mut delayed = false;
    for pod in scene.group.iter().filter(|pod| !pod.leaves()) {
        match pod.phase {
            Phase::Active => {}
            Phase::Succeeded => verdict.doom(pod, Why::Succeeded, scene.now),
            Phase::Failed if scene.backoff_until > scene.now || pod.held_until > scene.now => {
                verdict.wake_at(scene.backoff_until, scene.now);
                delayed = true;
            }
            // One per window: the others wait for the next (rule 3.5.3).
            Phase::Failed => {
                let one = verdict.doomed.iter().any(|(_, why)| *why == Why::Failed);
                if !one {
                    verdict.doom(pod, Why::Failed, scene.now);
                }
            }
        }
    }
    delayed
}

/// Two or more active pods where surge is allowed (rule 3.4.3).
fn one_old_and_one_new<'a>(
    scene: &Scene,
    active: impl Iterator<Item = &'a Member>,
    verdict: &mut Verdict,
) {
    let (mut new, mut old) = (None, None);
    for pod in active {
        let place = if pod.current_hash { &mut new } else { &mut old };
        match place {
            None => *place = Some(pod),
            Some(_) => verdict.doom(pod, Why::Plain, scene.now),
        }
    }
    if let (Some(new), Some(old)) = (new, old)
        && (!old.ready || new.available(scene.now))
    {
        verdict.doom(old, Why::Plain, scene.now);
    }
}
