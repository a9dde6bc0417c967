//! Which revision is stable when a rollout starts (R2).

use super::state::Verdict;
use crate::daemonset::history::Revision;

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
    let preceding = others.max_by_key(|revision| (revision.revision, &revision.name));
    if let Some(preceding) = preceding {
        let record = preceding.record.owned_by(owner);
        match (record.verdict, record.state) {
            (Some(Verdict::Stable), _) => return Some(preceding.hash()),
            (Some(_), Some(state)) if state.stable.is_some() => {
                let named =
                    |revision: &&&Revision| Some(revision.hash()) == state.stable.as_deref();
                return claimed.iter().find(named).map(|revision| revision.hash());
            }
            _ => {}
        }
    }
    let counted = claimed.iter();
    let counted = counted.map(|r| (pods(r.hash()), r.revision, r.hash()));
    let most = counted.filter(|(pods, ..)| *pods > 0).max();
    match most {
        Some((_, _, hash)) if target.is_none_or(|target| target.hash() != hash) => Some(hash),
        // Most pods carry the target already, or there are none: the one before, if there is one.
        Some(_) | None => preceding.map(Revision::hash),
    }
}
