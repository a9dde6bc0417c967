//! The graph's actions as requests to the API.

use kennel_client::write::{Call, Content, Writer};
use kennel_core::garbage::Item;
use kennel_core::garbage::graph::{Found, Lookup, Outcome, Policy, Step};
use kennel_types::Reason;
use serde_json::{Value, json};

use crate::discovery::Stored;

/// Looks up an owner. Only a definite 404 or another uid makes it absent.
pub(super) async fn look_up(writer: &Writer, stored: &Stored, lookup: &Lookup) -> Found {
    let path = stored.object(&lookup.namespace, &lookup.name);
    match writer.send(&Call::get(path)).await {
        Ok(answer) => match answer.written().uid.as_str() {
            "" => Found::Unclear,
            uid if uid == &*lookup.uid => Found::Present,
            _ => Found::Absent,
        },
        Err(failure) if failure.is(404) && failure.reason == Reason::NotFound => Found::Absent,
        Err(failure) => {
            tracing::warn!("looking up the owner {} failed: {failure}", lookup.name);
            Found::Unclear
        }
    }
}

pub(super) async fn perform(writer: &Writer, stored: &Stored, item: &Item, step: &Step) -> Outcome {
    let path = stored.object(&item.namespace, &item.name);
    let Err(failure) = writer.send(&call(path, item, step)).await else {
        return Outcome::Done;
    };
    if failure.is(404) {
        return Outcome::Done;
    }
    let what = format!("{} {}/{}", stored.resource.kind, item.namespace, item.name);
    if failure.is(409) {
        tracing::debug!("{what} has changed: {failure}");
    } else {
        tracing::warn!("collecting {what} failed: {failure}");
    }
    Outcome::Failed
}

fn call(path: String, item: &Item, step: &Step) -> Call {
    let (uid, version) = (&*item.uid, &*item.version);
    match step {
        Step::Delete(policy) => {
            let options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions",
                "preconditions": {"uid": uid, "resourceVersion": version},
                "propagationPolicy": policy_name(*policy),
            });
            Call {
                body: options.to_string(),
                ..Call::delete(path, uid)
            }
        }
        Step::DropOwners(owners) => {
            let drop = |owner| json!({"$patch": "delete", "uid": owner});
            let owners: Vec<Value> = owners.iter().map(|owner| drop(&**owner)).collect();
            owners_patch(path, uid, &owners)
        }
        Step::Unblock(owners) => {
            let unblock = |uid| json!({"uid": uid, "blockOwnerDeletion": false});
            let owners: Vec<Value> = owners.iter().map(|owner| unblock(&*owner.uid)).collect();
            owners_patch(path, uid, &owners)
        }
        Step::Release(left) => {
            let left: Vec<&str> = left.iter().map(|finalizer| &**finalizer).collect();
            let meta = json!({"uid": uid, "resourceVersion": version, "finalizers": left});
            Call::patch(path, Content::Merge, &json!({"metadata": meta}))
        }
    }
}

fn owners_patch(path: String, uid: &str, owners: &[Value]) -> Call {
    let patch = json!({"metadata": {"uid": uid, "ownerReferences": owners}});
    Call::patch(path, Content::Strategic, &patch)
}

fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Background => "Background",
        Policy::Foreground => "Foreground",
        Policy::Orphan => "Orphan",
    }
}
