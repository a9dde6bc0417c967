//! In which order the items of a merged list stand.
//!
//! Items of the patch stand in the order that the patch gives them; items only the server has keep
//! theirs. The two are then interleaved: an item of the server stands before the first item of the
//! patch that came after it on the server. An item that is new therefore comes first.

use serde_json::Value;

/// What an item is told apart by: its merge key, or itself if it is a scalar.
pub(super) fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> Option<&'a Value> {
    match merge_key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

/// The identities of a list.
pub(super) fn identities(items: &[Value], merge_key: Option<&str>) -> Vec<Value> {
    let found = items.iter().filter_map(|item| identity(item, merge_key));
    found.cloned().collect()
}

/// Puts merged items in order. `wanted` are the identities in the order of the patch, `before` those
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
