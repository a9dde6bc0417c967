//! The bound of the managers of updates.

use kennel_types::Timestamp;

use super::entry::{Manager, Managers, Operation};

/// The most managers of updates that are told apart; the oldest beyond it are merged.
pub(super) const UPDATE_MANAGERS_MAX: usize = 10;

/// The manager that the oldest managers of updates are merged into.
const OLD_UPDATES: &str = "ancient-changes";

/// Merges the oldest managers of updates, so that there are not too many.
pub(super) fn cap(mut managers: Managers) -> Managers {
    let is_update = |manager: &&Manager| manager.operation == Operation::Update;
    let mut updates: Vec<Manager> = managers.0.keys().filter(is_update).cloned().collect();
    if updates.len() <= UPDATE_MANAGERS_MAX {
        return managers;
    }
    let seconds = |manager: &Manager| {
        let time = managers.0.get(manager).and_then(|owned| owned.time);
        time.map_or(0, Timestamp::as_secs)
    };
    updates.sort_by_cached_key(|manager| (seconds(manager), manager.clone()));
    let mut excess = updates.len() - UPDATE_MANAGERS_MAX;
    let mut oldest: Vec<Manager> = Vec::new();
    for manager in updates {
        if excess == 0 {
            break;
        }
        let is_first = oldest
            .iter()
            .all(|other| other.api_version != manager.api_version);
        if is_first {
            oldest.push(manager);
            continue;
        }
        merge_into_bucket(&mut managers, &oldest, &manager);
        excess -= 1;
    }
    managers
}

/// Merges a manager with the first of its version in `oldest`, under one name.
fn merge_into_bucket(managers: &mut Managers, oldest: &[Manager], manager: &Manager) {
    let bucket = Manager {
        name: OLD_UPDATES.to_owned(),
        operation: Operation::Update,
        api_version: manager.api_version.clone(),
        subresource: String::new(),
    };
    let first = oldest
        .iter()
        .find(|first| first.api_version == manager.api_version);
    if !managers.0.contains_key(&bucket)
        && let Some(owned) = first.and_then(|first| managers.0.remove(first))
    {
        managers.0.insert(bucket.clone(), owned);
    }
    let Some(newer) = managers.0.remove(manager) else {
        return;
    };
    match managers.0.get_mut(&bucket) {
        Some(owned) => {
            owned.fields = std::mem::take(&mut owned.fields).union(&newer.fields);
            owned.time = newer.time;
        }
        None => {
            managers.0.insert(bucket, newer);
        }
    }
}
