//! Delete: preconditions, grace periods, finalizers, and the removal of an object.

use futures_util::stream::{self, StreamExt as _};
use kennel_core::managed_fields::Ownership;
use kennel_store::Durability;
use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::call::Call;
use super::options::{DeleteOptions, Propagation};
use super::update::{CommitResult, commit, may_be_removed};
use super::{At, managed_fields, read};
use crate::admit;
use crate::api::Api;
use crate::clock;
use crate::kinds::meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use crate::object::{Document, Stored};
use crate::registry::{self, Resource};
use crate::request::User;
use crate::request::path::Place;
use crate::response::Reply;
use crate::status::{self, ApiError, Result};
use crate::tree::{self, number, set, text};
use crate::watch::Filter;

/// How often a deletion is retried when another write comes first.
const ATTEMPTS_MAX: usize = 64;

/// How many objects of a collection are deleted concurrently; the store commits them together.
const AT_ONCE: usize = 64;

/// How far a deletion got.
pub(super) enum Deleted {
    /// The object is removed; this is its last version.
    Removed(Document),
    /// The object waits for its grace period or its finalizers to end.
    Waiting(Document),
}

pub(super) async fn delete(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let at = At::of(place)?;
    let options = DeleteOptions::of(call)?;
    let presenter = call.presenter(at.row)?;
    match delete_object(api, &call.user, at, &options).await? {
        Deleted::Removed(document) if !at.row.delete_returns_object => Ok(Reply::value(
            200,
            &status::deleted(at.row, at.name, text(&document.tree, "metadata.uid")),
        )),
        Deleted::Removed(document) | Deleted::Waiting(document) => {
            Ok(Reply::json(200, presenter.document(document)?))
        }
    }
}

pub(super) async fn delete_collection(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let row = place.row;
    let options = DeleteOptions::of(call)?;
    let filter = Filter::new(row, place.namespace.as_deref(), &call.query)?;
    read::confirm(api).await?;
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
        // An object that another request deleted after the listing counts as deleted.
        match deleted {
            Ok(Deleted::Removed(document) | Deleted::Waiting(document)) => {
                items.push(document.tree);
            }
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

/// Deletes one object, or marks it as being deleted if it must wait.
pub(super) async fn delete_object(
    api: &Api,
    user: &User,
    at: At<'_>,
    options: &DeleteOptions,
) -> Result<Deleted> {
    let mut newer = None;
    for _ in 0..ATTEMPTS_MAX {
        let stored = match newer.take() {
            Some(stored) => stored,
            None => at.stored(api)?,
        };
        admit::delete(user, at.row, &stored)?;
        let mut new = Document::from_stored(at.row, &stored).map_err(ApiError::internal)?;
        check_preconditions(&at, options, &new.tree)?;
        let before = metadata(&new.tree);
        mark(at.row, &mut new.tree, options);
        new.ownership = owners_after_mark(at.row, &stored, &before, &new)?;
        match commit_deletion(api, at, options, &stored, new).await? {
            Ok(deleted) => return Ok(deleted),
            Err(current) => newer = Some(current),
        }
    }
    Err(ApiError::stale(at.row, at.name))
}

/// The managers of an object that is marked as being deleted; `before` is its metadata before that. Marking adds fields
/// to the metadata only, so that a copy of the whole object is not needed; it removes at most finalizers.
fn owners_after_mark(
    row: &'static Resource,
    stored: &Stored,
    before: &Value,
    new: &Document,
) -> Result<Ownership> {
    let stored_row = registry::stored_row(row);
    let after = metadata(&new.tree);
    let finalizers = |tree: &Value| tree["metadata"]["finalizers"].as_array().cloned();
    let kept = finalizers(&after).unwrap_or_default();
    let removes = finalizers(before).is_some_and(|all| all.iter().any(|one| !kept.contains(one)));
    let ownership = new.ownership.clone();
    if removes {
        let whole = Document::from_stored(row, stored).map_err(ApiError::internal)?;
        let unchanged: &[&[&str]] = &[&["spec"], &["status"]];
        let (before, after) = (&whole.tree, &new.tree);
        return managed_fields::after_own_change(stored_row, ownership, before, after, unchanged);
    }
    managed_fields::after_own_change(stored_row, ownership, before, &after, &[])
}

/// The object without anything but its metadata.
fn metadata(tree: &Value) -> Value {
    json!({"metadata": tree["metadata"]})
}

/// Writes the deletion.
async fn commit_deletion(
    api: &Api,
    at: At<'_>,
    options: &DeleteOptions,
    stored: &Stored,
    mut new: Document,
) -> Result<CommitResult<Deleted>> {
    let remove = may_be_removed(at.row, &new.tree);
    let encoded = new.encode(registry::stored_row(at.row));
    let (value, head) = encoded.map_err(ApiError::internal)?;
    let unchanged = value == stored.value;
    at.row.convert_from_stored(&mut new.tree);
    if !options.dry_run && (remove || !unchanged) {
        let update = (!remove).then_some((value, head, Durability::Synced));
        let written = match commit(api, at, stored, update).await? {
            Ok(written) => written,
            Err(newer) => return Ok(Err(newer)),
        };
        let version = written.revision.to_string();
        tree::set(&mut new.tree, "metadata.resourceVersion", version.into());
    }
    Ok(Ok(if remove {
        Deleted::Removed(new)
    } else {
        Deleted::Waiting(new)
    }))
}

/// Marks an object as being deleted: sets the deletion timestamp, the grace period and the finalizers of
/// the propagation policy.
fn mark(row: &Resource, tree: &mut Value, options: &DeleteOptions) {
    let grace = row.strategy.grace_seconds(tree, options.grace_seconds);
    set_propagation_finalizers(tree, options.propagation);
    let first_time = !tree::is_deleting(tree);
    let earlier = number(tree, "metadata.deletionGracePeriodSeconds");
    if first_time {
        raise_generation(tree);
    }
    // A later deletion may only shorten the grace period.
    if first_time || grace < earlier {
        let begun = if first_time {
            None
        } else {
            started(tree, earlier)
        };
        let start = begun.unwrap_or_else(clock::now);
        let end = start.saturating_add_millis(grace.saturating_mul(1000));
        set(tree, "metadata.deletionTimestamp", end.to_string().into());
        set(tree, "metadata.deletionGracePeriodSeconds", grace.into());
    }
    row.strategy.begin_deletion(tree);
}

/// When the deletion of an object began.
fn started(tree: &Value, grace: i64) -> Option<Timestamp> {
    let end = tree::time(tree, "metadata.deletionTimestamp")?;
    Some(end.saturating_add_millis(grace.saturating_mul(-1000)))
}

/// The beginning of a deletion counts as a change of the spec.
fn raise_generation(tree: &mut Value) {
    if let Some(generation) = tree::int(tree, "metadata.generation") {
        set(tree, "metadata.generation", (generation + 1).into());
    }
}

/// Sets the garbage collector's finalizer of the policy; without a policy, the finalizers stay.
fn set_propagation_finalizers(tree: &mut Value, policy: Option<Propagation>) {
    let Some(policy) = policy else { return };
    let mut kept = tree::list(tree, "metadata.finalizers").to_vec();
    kept.retain(|f| *f != FINALIZER_ORPHAN && *f != FINALIZER_FOREGROUND);
    match policy {
        Propagation::Orphan => kept.push(FINALIZER_ORPHAN.into()),
        Propagation::Foreground => kept.push(FINALIZER_FOREGROUND.into()),
        Propagation::Background => {}
    }
    if kept.is_empty() {
        tree::remove(tree, "metadata.finalizers");
    } else {
        set(tree, "metadata.finalizers", kept.into());
    }
}

pub(super) fn check_preconditions(
    at: &At<'_>,
    options: &DeleteOptions,
    tree: &Value,
) -> Result<()> {
    let check = |wanted: &Option<String>, field: &str, words: &str| {
        let actual = text(&tree["metadata"], field);
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
