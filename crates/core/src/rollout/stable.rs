//! Which revision is stable when a rollout starts (R2).

use super::state::Verdict;
use crate::daemonset::history::Revision;

/// The target before the present one, of all other revisions: the one with the highest number. But a rollout renumbers its
/// stable first (R5.8); if it ended before its target was renumbered, stable is above its target.
fn preceding<'a>(owner: &str, mut others: Vec<&'a Revision>) -> Option<&'a Revision> {
    others.sort_by_key(|revision| (revision.revision, &revision.name));
    let highest = others.pop()?;
    let below = others.pop().filter(|below| {
        let state = below.record.owned_by(owner).state;
        state.is_some_and(|state| state.stable.as_deref() == Some(highest.hash()))
    });
    Some(below.unwrap_or(highest))
}

/// The hash of stable for a rollout that starts now. `owner` is the uid of the DaemonSet, `claimed` are all its revisions,
/// with the target's if that exists already, and `pods` counts the pods with a hash.
pub fn hash<'a>(
    owner: &str,
    target: Option<&Revision>,
    claimed: &[&'a Revision],
    pods: impl Fn(&str) -> usize,
) -> Option<&'a str> {
    let is_target = |revision: &Revision| target.is_some_and(|target| target.uid == revision.uid);
    let others = claimed.iter().copied().filter(|other| !is_target(other));
    let preceding = preceding(owner, others.collect());
    if let Some(preceding) = preceding {
        let record = preceding.record.owned_by(owner);
        match (record.verdict, record.state) {
            (Some(Verdict::Stable), _) => return Some(preceding.hash()),
            // Without one, its first creation was staged: there is none before it either.
            (Some(_), Some(state)) => {
                let named =
                    |revision: &&&Revision| Some(revision.hash()) == state.stable.as_deref();
                return claimed.iter().find(named).map(|revision| revision.hash());
            }
            _ => {}
        }
    }
    let others = claimed.iter().filter(|revision| !is_target(revision));
    let counted = others.map(|r| (pods(r.hash()), r.revision, r.hash()));
    let most = counted.filter(|(pods, ..)| *pods > 0).max();
    match most {
        Some((_, _, hash)) => Some(hash),
        // No pod carries another revision than the target: the one before, if there is one.
        None => preceding.map(Revision::hash),
    }
}
