//! Update: PUT, and the read-modify-write loop of every change to a stored object.

use std::sync::Arc;

use bytes::Bytes;
use kennel_core::managed_fields::Ownership;
use kennel_store::{Durability, Op, WriteError, Written};
use kennel_types::{Reason, Verb};
use serde_json::Value;

use super::call::Call;
use super::create::{create_decoded, store_failed};
use super::decode::Decoded;
use super::managed_fields::{self, Author};
use super::{At, decode, meta};
use crate::admit::{self, Notes, node_restriction, quota};
use crate::api::Api;
use crate::authorize::{Attributes, ResourceAttributes};
use crate::field::{FieldError, Path};
use crate::kinds;
use crate::object::{self, Document, Head, Stored};
use crate::quota::Writer;
use crate::quota_ledger::Reservation;
use crate::registry::{self, Part, Resource};
use crate::request::User;
use crate::request::path::Place;
use crate::request::query::parse_version;
use crate::response::Reply;
use crate::revocation;
use crate::status::{ApiError, Result};
use crate::tree::{self, number, text};

/// How often an unconditional change is retried when another write comes first.
const ATTEMPTS_MAX: usize = 64;

/// By how much a step towards the removal of an object may let it grow beyond the storage quota, in bytes: a deletion timestamp, a
/// condition and an entry of managed fields take less.
const DELETION_GROWTH_MAX: usize = 4 << 10;

/// The new version of an object as the request wants it.
pub(super) struct Edit {
    pub(super) document: Document,
    /// The resourceVersion that the change depends on, if it does.
    pub(super) expected: Option<u64>,
    pub(super) warnings: Vec<String>,
    /// The managers that an apply leaves; none for any other change.
    pub(super) ownership: Option<Ownership>,
}

impl Edit {
    /// A change that depends on no version and gives no warnings.
    pub(super) fn of(document: Document) -> Self {
        Self {
            document,
            expected: None,
            warnings: Vec::new(),
            ownership: None,
        }
    }
}

pub(super) struct Changed {
    pub(super) outcome: Outcome,
    pub(super) notes: Notes,
}

pub(crate) enum Outcome {
    /// The object as it is stored now, perhaps unchanged.
    Stored(Stored),
    /// The object of a dry run, or as it was when it was removed.
    Unstored(Document),
}

/// What all attempts of a change have in common.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) at: At<'a>,
    pub(super) by: Author<'a>,
    pub(super) part: Part,
    pub(super) dry_run: bool,
}

pub(super) async fn update(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    update_part(api, call, place, Part::Main).await
}

/// PUT of an object or of one part of it.
pub(super) async fn update_part(
    api: &Api,
    call: &Call,
    place: &Place,
    part: Part,
) -> Result<Reply> {
    let at = At::of(place)?;
    let dry_run = call.query.dry_run("UpdateOptions")?;
    call.query.check_field_manager("UpdateOptions")?;
    let mut decoded = decode::object(call, at.row, "UpdateOptions")?;
    check_name(&at, &decoded.document.tree)?;
    meta::check_namespace(&mut decoded.document.tree, at.namespace)?;
    if part == Part::Main && at.row.create_on_update && api.store.get(&at.key()).is_none() {
        match create_instead(api, call, at, &decoded, dry_run).await {
            // Another request created it meanwhile, so this is an update after all.
            Err(error) if error.reason == Reason::AlreadyExists => {}
            other => return other,
        }
    }
    let expected = expected_version(&decoded.document.tree)?;
    let unconditional = at.row.unconditional_update || part != Part::Main;
    let manager = call.manager();
    let change = Change {
        at,
        by: Author {
            user: &call.user,
            manager: &manager,
        },
        part,
        dry_run,
    };
    let changed = modify(api, change, |old| {
        check_uid(&at, &decoded.document.tree, &old.tree)?;
        if expected.is_none() && !unconditional {
            return Err(must_have_version(&at));
        }
        // A change that depends on a version is tried once.
        let document = match expected {
            Some(_) => std::mem::take(&mut decoded.document),
            None => decoded.document.clone(),
        };
        Ok(Edit {
            expected,
            warnings: decoded.warnings.clone(),
            ..Edit::of(document)
        })
    })
    .await?;
    reply(call, at.row, 200, changed)
}

/// The answer to a change.
pub(super) fn reply(
    call: &Call,
    row: &'static Resource,
    code: u16,
    changed: Changed,
) -> Result<Reply> {
    let presenter = call.presenter(row)?;
    let bytes = match changed.outcome {
        Outcome::Stored(stored) => presenter.one(&stored, stored.modified)?,
        Outcome::Unstored(document) => presenter.document(document)?,
    };
    let Notes { warnings, audit } = changed.notes;
    let mut reply = Reply::json(code, bytes).with_warnings(warnings);
    reply.audit = audit;
    Ok(reply)
}

/// Changes an object: reads it, calls `edit` for the new version, applies the rules of the kind, and
/// writes it if no other write came first. An unconditional change that lost the race is retried on the
/// newer version; a conditional one is a conflict.
pub(super) async fn modify(
    api: &Api,
    change: Change<'_>,
    mut edit: impl FnMut(&Document) -> Result<Edit>,
) -> Result<Changed> {
    let at = change.at;
    let _lock = admit::lock(api, at.row).await?;
    let mut newer = None;
    for _ in 0..ATTEMPTS_MAX {
        let stored = match newer.take() {
            Some(stored) => stored,
            None => at.stored(api)?,
        };
        let mut old = Document::from_stored(at.row, &stored).map_err(ApiError::internal)?;
        at.row.convert_from_stored(&mut old.tree);
        let Edit {
            mut document,
            expected,
            warnings,
            ownership,
        } = edit(&old)?;
        let mut notes = Notes::from(warnings);
        if expected.is_some_and(|revision| revision != stored.modified) {
            return Err(ApiError::stale(at.row, at.name));
        }
        // Held until the new version is stored.
        let _reservation = apply_rules(api, change, &mut document, &old, ownership, &mut notes)?;
        if change.part == Part::Main {
            let warnings = at.row.strategy.warnings(&document.tree, Some(&old.tree));
            notes.warnings.extend(warnings);
        }
        match write(api, change, &stored, old, document).await? {
            Ok(outcome) => return Ok(Changed { outcome, notes }),
            Err(_) if expected.is_some() => return Err(ApiError::stale(at.row, at.name)),
            Err(current) => newer = Some(current),
        }
    }
    Err(ApiError::stale(at.row, at.name))
}

/// Applies the rules of the kind to the new version, and reserves what it uses of quotas.
fn apply_rules<'a>(
    api: &'a Api,
    change: Change<'a>,
    new: &mut Document,
    old: &Document,
    ownership: Option<Ownership>,
    notes: &mut Notes,
) -> Result<Option<Reservation<'a>>> {
    let Change { at, part, by, .. } = change;
    let row = at.row;
    let requested = managed_fields::take(&mut new.tree);
    meta::prepare_update(&mut new.tree, &old.tree);
    new.keep_raw_of(old);
    row.strategy.default(&mut new.tree);
    new.ownership = match ownership {
        Some(ownership) => ownership,
        None => managed_fields::of_update(row, part, by.manager, &requested, (new, old))?,
    };
    let before = managed_fields::before_own_change(row, part, new, &old.tree);
    let reservation = prepare_and_validate(api, change, &mut new.tree, &old.tree, notes)?;
    if let Some(before) = before {
        let ownership = std::mem::take(&mut new.ownership);
        let unchanged = row.strategy.reset_fields(part);
        new.ownership =
            managed_fields::after_own_change(row, ownership, &before, &new.tree, unchanged)?;
    }
    Ok(reservation)
}

/// Lets the kind and admission change and check the new version, and reserves what it uses of quotas.
fn prepare_and_validate<'a>(
    api: &'a Api,
    change: Change<'a>,
    tree: &mut Value,
    old: &Value,
    notes: &mut Notes,
) -> Result<Option<Reservation<'a>>> {
    let Change { at, part, by, .. } = change;
    let row = at.row;
    node_restriction::update(by.user, row, part, tree, old)?;
    let write = admit::Write {
        api,
        user: by.user,
        row,
        namespace: at.namespace,
    };
    let mut errors = Vec::new();
    match part {
        Part::Main => {
            // Preparation looks at what has changed, so it must find what admission sets again.
            row.admission.update(write, tree, old)?;
            row.strategy.prepare_update(tree, old);
            errors = kinds::meta::validate_update(&tree["metadata"], &old["metadata"]);
            errors.extend(row.strategy.validate_update(tree, old));
        }
        Part::Status => {
            row.strategy.prepare_status_update(tree, old);
            errors = kinds::meta::validate_update(&tree["metadata"], &old["metadata"]);
            errors.extend(row.strategy.validate_status_update(tree, old));
        }
        Part::Approval | Part::Finalize | Part::EphemeralContainers => {
            let now = meta::now();
            row.strategy.prepare_subresource_update(tree, old, &now);
            errors = row.strategy.validate_subresource_update(tree, old);
        }
        Part::Binding => {}
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid(row, at.name, &errors));
    }
    row.admission
        .validate(write, part, tree, Some(old), notes)?;
    if part != Part::Main {
        return Ok(None);
    }
    row.admission.allocate(write, tree, Some(old))?;
    quota::reserve(write, tree, Some(old))
}

/// Writes the new version, or removes the object if its deletion has nothing left to wait for.
async fn write(
    api: &Api,
    change: Change<'_>,
    stored: &Stored,
    old: Document,
    mut document: Document,
) -> Result<CommitResult<Outcome>> {
    let row = change.at.row;
    let remove = tree::is_deleting(&document.tree) && may_be_removed(row, &document.tree);
    let durability = row.strategy.durability(&document.tree, &old.tree);
    let version = stored.modified.to_string();
    if row.conversion.is_none() {
        document.settle_ownership(row);
    }
    row.convert_to_stored(&mut document.tree);
    let encoded = document.encode(registry::stored_row(row));
    let (value, head) = encoded.map_err(ApiError::internal)?;
    // A write that changes only when managers wrote would only make watchers work.
    let is_same = object::same_but_managers((&value, &head), (&stored.value, &stored.head))
        && managed_fields::same_owners(row, &document, &old);
    if is_same && !remove {
        return Ok(Ok(Outcome::Stored(Arc::clone(stored))));
    }
    if change.dry_run {
        row.convert_from_stored(&mut document.tree);
        tree::set(
            &mut document.tree,
            "metadata.resourceVersion",
            version.into(),
        );
        return Ok(Ok(Outcome::Unstored(document)));
    }
    if !remove {
        let sizes = (stored.value.len(), value.len());
        admit_growth(api, &change, sizes, (&old.tree, &document.tree))?;
    }
    // As in a create: no tree stays in memory while the disk is waited for, unless the answer shows it.
    drop(old);
    let shown = remove.then_some(document);
    let update = (!remove).then_some((value, head, durability));
    let written = match commit(api, change.at, stored, update).await? {
        Ok(written) => written,
        Err(newer) => return Ok(Err(newer)),
    };
    let Some(mut document) = shown else {
        return Ok(Ok(Outcome::Stored(written.record)));
    };
    row.convert_from_stored(&mut document.tree);
    let version = written.revision.to_string();
    tree::set(
        &mut document.tree,
        "metadata.resourceVersion",
        version.into(),
    );
    Ok(Ok(Outcome::Unstored(document)))
}

/// Checks the storage quota. Steps towards the removal of an object are always admitted, if they let it grow only a little: its
/// deletion, and the removal of a finalizer, which cannot be added again. Other little growth of what is being deleted, as of its
/// status, is admitted as that of nodes at least.
fn admit_growth(
    api: &Api,
    change: &Change<'_>,
    (before, after): (usize, usize),
    (old, new): (&Value, &Value),
) -> Result<()> {
    let (user, row) = (change.by.user, change.at.row);
    let mut writer = Writer::of(user, row);
    if tree::is_deleting(new) && after.saturating_sub(before) <= DELETION_GROWTH_MAX {
        let finalizers = |tree| tree::list(tree, "metadata.finalizers").len();
        if !tree::is_deleting(old) || finalizers(new) < finalizers(old) {
            return Ok(());
        }
        writer = writer.max(Writer::Node);
    }
    api.admit_growth(writer, before, after)
}

/// The outcome of a write, or if the object was changed meanwhile, its current version. That of the store's answer: memory may be
/// older.
pub(super) type CommitResult<T> = std::result::Result<T, Stored>;

/// Replaces the stored version, or without an `update` deletes it.
pub(super) async fn commit(
    api: &Api,
    at: At<'_>,
    stored: &Stored,
    update: Option<(Bytes, Head, Durability)>,
) -> Result<CommitResult<Written<Head>>> {
    let (key, expected) = (at.key(), stored.modified);
    // Before the removal: a crash in between must not leave a removed object with valid certificates.
    if update.is_none()
        && let Some(user) = at.row.admission.revoked_user(at.name)
    {
        let now = api.settings.certificates.now();
        revocation::revoke(&*api.store, &user, now).await?;
    }
    if update.is_some() {
        check_writable(api, &at, &key)?;
    }
    let allocations = at.row.admission.allocations(api);
    if let Some(all) = allocations {
        all.forget_shown(&*api.store);
    }
    let under_way = allocations.zip(update.as_ref());
    let under_way = under_way.map(|(all, (value, ..))| all.begin(&key, expected, value));
    let op = match update {
        None => Op::Delete { key, expected },
        Some((value, head, durability)) => Op::Update {
            key,
            expected,
            value,
            head,
            durability,
        },
    };
    let outcome = api.store.write(op).await;
    if let Some(under_way) = under_way {
        under_way.end(&outcome);
    }
    match outcome {
        Ok(written) => Ok(Ok(written)),
        Err(WriteError::Stale(current)) => Ok(Err(current)),
        Err(WriteError::Missing) => Err(ApiError::not_found(at.row, at.name)),
        Err(error) => Err(store_failed(&error)),
    }
}

/// Refuses to replace an object of which this version can read only a part.
fn check_writable(api: &Api, at: &At<'_>, key: &str) -> Result<()> {
    let Some(fields) = api.store.read_only(key) else {
        return Ok(());
    };
    let why = format!(
        "another API server has stored it with fields that this version does not know ({fields}), which a write would drop; \
         start the server with --store-may-lose-fields {key} to allow that"
    );
    Err(ApiError::forbidden(at.row, at.name, &why))
}

/// Whether an object that is being deleted has nothing left to wait for: no grace period, no finalizers.
pub(super) fn may_be_removed(row: &Resource, tree: &Value) -> bool {
    number(tree, "metadata.deletionGracePeriodSeconds") == 0
        && !row.strategy.blocks_deletion(tree)
        && tree::list(tree, "metadata.finalizers").is_empty()
}

/// The resourceVersion in a body, if the change is to depend on it.
pub(super) fn expected_version(tree: &Value) -> Result<Option<u64>> {
    match text(tree, "metadata.resourceVersion") {
        "" | "0" => Ok(None),
        version => parse_version(version).map(Some),
    }
}

fn must_have_version(at: &At<'_>) -> ApiError {
    let path = Path::new("metadata.resourceVersion");
    let words = "must be specified for an update";
    let error = FieldError::invalid_shown(&path, "0x0".to_owned(), words);
    ApiError::invalid(at.row, at.name, &[error])
}

/// Checks that the object in a body is that of the URL.
pub(super) fn check_name(at: &At<'_>, tree: &Value) -> Result<()> {
    let (name, url) = (text(tree, "metadata.name"), at.name);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({url} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != url {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url})"
        )));
    }
    let namespace = text(tree, "metadata.namespace");
    match at.namespace {
        Some(url) if !namespace.is_empty() && namespace != url => {
            Err(ApiError::bad_request(format!(
                "the namespace of the object ({namespace}) does not match the namespace on the URL ({url})"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses a body with the uid of another object.
fn check_uid(at: &At<'_>, new: &Value, old: &Value) -> Result<()> {
    let (given, actual) = (text(new, "metadata.uid"), text(old, "metadata.uid"));
    if given.is_empty() || given == actual {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {given}, UID in object meta: {actual}");
    Err(ApiError::conflict(at.row, at.name, &why))
}

/// A PUT that creates an object needs the right to create it, beside the right to update.
pub(super) fn check_may_create(api: &Api, user: &User, at: &At<'_>) -> Result<()> {
    let asked = ResourceAttributes {
        verb: Verb::Create,
        group: at.row.group,
        version: at.row.version,
        resource: at.row.plural,
        namespace: at.namespace.unwrap_or_default(),
        name: at.name,
        ..ResourceAttributes::default()
    };
    api.authorizer.check(user, &Attributes::Resource(asked))
}

async fn create_instead(
    api: &Api,
    call: &Call,
    at: At<'_>,
    decoded: &Decoded,
    dry_run: bool,
) -> Result<Reply> {
    check_may_create(api, &call.user, &at)?;
    let mut decoded = decoded.clone();
    tree::remove(&mut decoded.document.tree, "metadata.resourceVersion");
    create_decoded(api, call, at.row, at.namespace, decoded, dry_run).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_is_removed_when_both_lists_of_finalizers_are_empty() {
        let row = registry::find("", "v1", "namespaces").unwrap();
        for (spec, metadata, expected) in [
            (json!(["kubernetes"]), json!([]), false),
            (json!([]), json!(["a.b/c"]), false),
            (json!([]), json!([]), true),
        ] {
            let tree = json!({"metadata": {"finalizers": metadata}, "spec": {"finalizers": spec}});
            assert_eq!(may_be_removed(row, &tree), expected, "{tree}");
        }
    }
}
