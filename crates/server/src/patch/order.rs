//! The order of the items of a merged list.
//!
//! Items of the patch keep the order of the patch; items that only the server has keep the server's.
//! The two are interleaved: an item of the server goes before the first item of the patch that came
//! after it on the server. New items therefore come first.

use serde_json::Value;

/// The value that identifies an item: its merge key, or the item itself if it is a scalar.
pub(super) fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> Option<&'a Value> {
    match merge_key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

pub(super) fn identities(items: &[Value], merge_key: Option<&str>) -> Vec<Value> {
    let found = items.iter().filter_map(|item| identity(item, merge_key));
    found.cloned().collect()
}

/// Sorts merged items. `wanted` are the identities in the order of the patch, `before` those
/// of the list as the server had it.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let position = |item: &Value, order: &[Value]| {
        let identity = identity(item, merge_key)?;
        order.iter().position(|other| other == identity)
    };
    let (mut ours, mut theirs): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| position(item, wanted).is_some());
    ours.sort_by_key(|item| position(item, wanted));
    theirs.sort_by_key(|item| position(item, before));
    let mut out = Vec::with_capacity(ours.len() + theirs.len());
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        let take_theirs = match (ours.peek(), theirs.peek()) {
            (None, None) => return out,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(our), Some(their)) => match (position(their, before), position(our, before)) {
                (Some(their), Some(our)) => their < our,
                _ => false,
            },
        };
        out.extend(if take_theirs {
            theirs.next()
        } else {
            ours.next()
        });
    }
}
