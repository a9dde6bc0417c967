//! Delete: preconditions, grace, finalizers, and the end of an object.

use futures_util::stream::{self, StreamExt as _};
use kennel_store::{Durability, Op, WriteError};
use serde_json::{Value, json};

use super::call::{Call, Reply};
use super::create::store_failed;
use super::options::{DeleteOptions, Propagation};
use super::update::may_go;
use super::{At, meta, read};
use crate::admit;
use crate::api::Api;
use crate::kinds;
use crate::object::{Document, Stored};
use crate::present;
use crate::registry;
use crate::request::User;
use crate::request::path::Place;
use crate::status::{self, ApiError, Result};
use crate::watch::Filter;

/// The finalizers that the garbage collector answers.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How often a deletion is tried again when others change the object meanwhile.
const ATTEMPTS_MAX: usize = 64;

/// How many objects of a collection are deleted at once: the store commits them together.
const AT_ONCE: usize = 64;

/// How far a deletion got.
pub(super) enum Deleted {
    /// The object is gone; this is how it ended.
    Gone(Document),
    /// The object waits for its grace period or its finalizers.
    Waiting(Document),
}

pub(super) async fn delete(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let at = At::of(place)?;
    let options = DeleteOptions::of(call)?;
    let presenter = call.presenter(at.row)?;
    match delete_object(api, &call.user, at, &options).await? {
        Deleted::Gone(document) if !at.row.delete_returns_object => Ok(Reply::value(
            200,
            &status::deleted(at.row, at.name, meta::text(&document.tree, "uid")),
        )),
        Deleted::Gone(document) | Deleted::Waiting(document) => {
            Ok(Reply::json(200, presenter.document(document)?))
        }
    }
}

pub(super) async fn delete_collection(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let row = place.row;
    let options = DeleteOptions::of(call)?;
    let filter = Filter::new(row, place.namespace.as_deref(), &call.query)?;
    let mut page = read::page(api, place, &filter);
    if let Some(limit) = call.query.number("limit")?.filter(|n| *n > 0) {
        page.records
            .truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    let mut items = Vec::with_capacity(page.records.len());
    let deletions = page.records.into_iter().map(async |stored| {
        let namespace = row.namespaced().then_some(&*stored.head.namespace);
        let at = At {
            row,
            namespace,
            name: &stored.head.name,
        };
        delete_object(api, &call.user, at, &options).await
    });
    let mut deletions = stream::iter(deletions).buffered(AT_ONCE);
    while let Some(deleted) = deletions.next().await {
        // Each is deleted as it was listed; one that went by itself is as good as deleted.
        match deleted {
            Ok(Deleted::Gone(document) | Deleted::Waiting(document)) => items.push(document.tree),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let list = json!({
        "kind": format!("{}List", row.kind), "apiVersion": row.api_version(),
        "metadata": {"resourceVersion": api.store.revision().to_string()}, "items": items,
    });
    Ok(Reply::value(200, &list))
}

/// Deletes one object as far as it can be deleted now.
pub(super) async fn delete_object(
    api: &Api,
    user: &User,
    at: At<'_>,
    options: &DeleteOptions,
) -> Result<Deleted> {
    for _ in 0..ATTEMPTS_MAX {
        let found = api.store.get(&at.key());
        let stored = found.ok_or_else(|| ApiError::not_found(at.row, at.name))?;
        admit::delete(user, at.row, &stored)?;
        let old = Document::from_stored(at.row, &stored).map_err(ApiError::internal)?;
        check_preconditions(&at, options, &old.tree)?;
        let mut new = old.clone();
        mark(at.row.kind, &mut new.tree, options);
        if let Some(deleted) = carry_out(api, at, options, &stored, new).await? {
            return Ok(deleted);
        }
    }
    Err(ApiError::stale(at.row, at.name))
}

/// Writes the deletion. `None`: somebody else changed the object first.
async fn carry_out(
    api: &Api,
    at: At<'_>,
    options: &DeleteOptions,
    stored: &Stored,
    mut new: Document,
) -> Result<Option<Deleted>> {
    let (key, expected) = (at.key(), stored.modified);
    let gone = may_go(at.row.kind, &new.tree);
    let (value, head) = new
        .encode(registry::stored_row(at.row))
        .map_err(ApiError::internal)?;
    let unchanged = value == stored.value;
    present::to_view(at.row, &mut new.tree);
    if options.dry_run || (unchanged && !gone) {
        let made = if gone {
            Deleted::Gone
        } else {
            Deleted::Waiting
        };
        return Ok(Some(made(new)));
    }
    let op = if gone {
        Op::Delete { key, expected }
    } else {
        Op::Update {
            key,
            expected,
            value,
            head,
            durability: Durability::Synced,
        }
    };
    match api.store.write(op).await {
        Ok(written) => {
            let version = written.revision.to_string();
            meta::of(&mut new.tree).insert("resourceVersion".into(), version.into());
            Ok(Some(if gone {
                Deleted::Gone(new)
            } else {
                Deleted::Waiting(new)
            }))
        }
        Err(WriteError::Stale(_)) => Ok(None),
        Err(WriteError::Missing) => Err(ApiError::not_found(at.row, at.name)),
        Err(error) => Err(store_failed(&error)),
    }
}

/// Marks an object as being deleted: when, with which grace, waiting for whom.
fn mark(kind: &str, tree: &mut Value, options: &DeleteOptions) {
    let grace = if kind == "Pod" {
        pod_grace(tree, options.grace_seconds)
    } else {
        0
    };
    set_propagation_finalizers(tree, options.propagation);
    let first_time = !meta::is_deleting(tree);
    let earlier = tree["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0);
    if first_time {
        raise_generation(tree);
    }
    // A later deletion may only shorten the wait.
    if first_time || grace < earlier {
        let moved = if first_time {
            None
        } else {
            started(tree, earlier)
        };
        let start = moved.unwrap_or_else(jiff::Timestamp::now);
        let end = start
            .saturating_add(jiff::SignedDuration::from_secs(grace))
            .unwrap_or(start);
        let metadata = meta::of(tree);
        metadata.insert("deletionTimestamp".into(), meta::at(end).into());
        metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
    }
    if kind == "Namespace" {
        kinds::namespace::begin_deletion(tree);
    }
}

/// When the deletion that is under way began.
fn started(tree: &Value, grace: i64) -> Option<jiff::Timestamp> {
    let end: jiff::Timestamp = meta::text(tree, "deletionTimestamp").parse().ok()?;
    end.checked_sub(jiff::SignedDuration::from_secs(grace)).ok()
}

/// Kinds with a generation count the beginning of their deletion as a change.
fn raise_generation(tree: &mut Value) {
    if let Some(generation) = tree["metadata"]["generation"].as_i64() {
        tree["metadata"]["generation"] = (generation + 1).into();
    }
}

/// The seconds a pod gets to end in order.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let unbound = pod["spec"]["nodeName"]
        .as_str()
        .unwrap_or_default()
        .is_empty();
    let finished = matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    if unbound || finished {
        return 0;
    }
    let own = || pod["spec"]["terminationGracePeriodSeconds"].as_i64();
    match asked.or_else(own).unwrap_or(0) {
        // Upstream's reading of a negative grace: as soon as possible, but in order.
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// The collector's finalizers as the policy wants them; without one, whatever is there stays.
fn set_propagation_finalizers(tree: &mut Value, policy: Option<Propagation>) {
    let Some(policy) = policy else { return };
    let list = tree["metadata"]["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut kept: Vec<Value> = list
        .into_iter()
        .filter(|f| *f != ORPHAN && *f != FOREGROUND)
        .collect();
    match policy {
        Propagation::Orphan => kept.push(ORPHAN.into()),
        Propagation::Foreground => kept.push(FOREGROUND.into()),
        Propagation::Background => {}
    }
    let metadata = meta::of(tree);
    if kept.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), kept.into());
    }
}

fn check_preconditions(at: &At<'_>, options: &DeleteOptions, tree: &Value) -> Result<()> {
    let check = |wanted: &Option<String>, field: &str, words: &str| {
        let actual = meta::text(tree, field);
        match wanted {
            Some(wanted) if wanted != actual => {
                let why = format!(
                    "Precondition failed: {words} in precondition: {wanted}, {words} in object meta: {actual}"
                );
                Err(ApiError::conflict(at.row, at.name, &why))
            }
            _ => Ok(()),
        }
    };
    check(&options.uid, "uid", "UID")?;
    check(
        &options.resource_version,
        "resourceVersion",
        "ResourceVersion",
    )
}
