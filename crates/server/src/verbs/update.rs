//! Update: PUT, and the loop that every change of a stored object goes through.

use std::sync::Arc;

use kennel_store::{Durability, Op, WriteError};
use kennel_types::{Reason, Verb};
use serde_json::Value;

use super::call::{Call, Reply};
use super::create::{Created, insert, store_failed};
use super::{At, decode, meta};
use crate::admit;
use crate::api::Api;
use crate::authorize::{Attributes, ResourceAttributes};
use crate::kinds;
use crate::object::{Document, Stored};
use crate::present;
use crate::registry;
use crate::request::User;
use crate::request::path::Place;
use crate::request::query::parse_version;
use crate::status::{ApiError, Result};

/// How often an unconditional change is tried again when others change the object meanwhile.
const ATTEMPTS_MAX: usize = 64;

/// Which part of an object a change may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything but the status.
    Main,
    /// The status.
    Status,
    /// The approval of a certificate signing request.
    Approval,
    /// The finalizers of a namespace.
    Finalize,
    /// What the server itself changes (a binding): no rules of the kind apply.
    Server,
}

impl Part {
    /// The subresource through which it is changed; empty for the object itself.
    fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Approval => "approval",
            Self::Finalize => "finalize",
            Self::Server => "binding",
        }
    }
}

/// A change as its author wants it.
pub(super) struct Edit {
    pub(super) document: Document,
    /// The revision the author has seen, if the change depends on it.
    pub(super) expected: Option<u64>,
    pub(super) warnings: Vec<String>,
}

/// What came of a change.
pub(super) struct Changed {
    pub(super) outcome: Outcome,
    pub(super) warnings: Vec<String>,
}

pub(super) enum Outcome {
    /// The object as it is stored now (perhaps as before).
    Stored(Stored),
    /// The object as it would be, or as it was at its end; not stored.
    Unstored(Document),
}

/// What all attempts of a change share.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) at: At<'a>,
    /// Who makes it.
    pub(super) by: &'a User,
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
            // Somebody else made it meanwhile: then this is an update after all.
            Err(error) if error.reason == Reason::AlreadyExists => {}
            other => return other,
        }
    }
    let expected = expected_version(&decoded.document.tree)?;
    let unconditional = at.row.unconditional_update || part != Part::Main;
    let by = &call.user;
    let change = Change {
        at,
        by,
        part,
        dry_run,
    };
    let changed = modify(api, change, |old| {
        check_uid(&at, &decoded.document.tree, &old.tree)?;
        if expected.is_none() && !unconditional {
            return Err(must_have_version(&at));
        }
        // One that depends on a version is tried once.
        let document = match expected {
            Some(_) => std::mem::take(&mut decoded.document),
            None => decoded.document.clone(),
        };
        Ok(Edit {
            document,
            expected,
            warnings: decoded.warnings.clone(),
        })
    })
    .await?;
    reply(call, at, changed)
}

/// The answer to a change.
pub(super) fn reply(call: &Call, at: At<'_>, changed: Changed) -> Result<Reply> {
    let presenter = call.presenter(at.row)?;
    let bytes = match changed.outcome {
        Outcome::Stored(stored) => presenter.one(&stored, stored.modified)?,
        Outcome::Unstored(document) => presenter.document(document)?,
    };
    Ok(Reply::json(200, bytes).with_warnings(changed.warnings))
}

/// Changes an object: reads it, lets `edit` make the new version, applies the rules of the kind,
/// and writes it if nobody else was faster. An unconditional change that lost a race is made
/// again on the newer version; a conditional one is a conflict.
pub(super) async fn modify(
    api: &Api,
    change: Change<'_>,
    mut edit: impl FnMut(&Document) -> Result<Edit>,
) -> Result<Changed> {
    let at = change.at;
    let _held = admit::hold(api, at.row).await;
    for _ in 0..ATTEMPTS_MAX {
        let key = at.key();
        let stored = api
            .store
            .get(&key)
            .ok_or_else(|| ApiError::not_found(at.row, at.name))?;
        let mut old = Document::from_stored(at.row, &stored).map_err(ApiError::internal)?;
        present::to_view(at.row, &mut old.tree);
        let Edit {
            mut document,
            expected,
            mut warnings,
        } = edit(&old)?;
        if expected.is_some_and(|revision| revision != stored.modified) {
            return Err(ApiError::stale(at.row, at.name));
        }
        finish(api, change, &mut document, &old)?;
        if change.part == Part::Main {
            warnings.extend(at.row.strategy.warnings(&document.tree, Some(&old.tree)));
        }
        match write(api, change, &stored, old, document).await? {
            Some(outcome) => return Ok(Changed { outcome, warnings }),
            None if expected.is_some() => return Err(ApiError::stale(at.row, at.name)),
            None => {}
        }
    }
    Err(ApiError::stale(at.row, at.name))
}

/// Applies the rules of the kind to the new version.
fn finish(api: &Api, change: Change<'_>, new: &mut Document, old: &Document) -> Result<()> {
    let row = change.at.row;
    meta::prepare_update(&mut new.tree, &old.tree);
    new.keep_raw_of(old);
    row.strategy.default(&mut new.tree);
    let subresource = change.part.subresource();
    admit::noderestriction::update(change.by, row, subresource, &new.tree, &old.tree)?;
    let tree = &mut new.tree;
    let mut errors = Vec::new();
    match change.part {
        Part::Main => {
            row.strategy.prepare_update(tree, &old.tree);
            admit::update(api, change.by, row, tree, &old.tree)?;
            errors = kinds::meta::validate_update(&tree["metadata"], &old.tree["metadata"]);
            errors.extend(row.strategy.validate_update(tree, &old.tree));
        }
        Part::Status => {
            row.strategy.prepare_status_update(tree, &old.tree);
            errors = kinds::meta::validate_update(&tree["metadata"], &old.tree["metadata"]);
            errors.extend(row.strategy.validate_status_update(tree, &old.tree));
        }
        Part::Approval => {
            kinds::csr::prepare_approval_update(tree, &old.tree);
            kinds::csr::stamp_conditions(tree, &old.tree, &meta::now());
            errors = kinds::csr::validate_approval_update(tree, &old.tree);
        }
        Part::Finalize => {
            kinds::namespace::prepare_finalize_update(tree, &old.tree);
            errors = kinds::namespace::validate_finalize_update(tree);
        }
        Part::Server => {}
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid(row, change.at.name, &errors));
    }
    admit::signing::decide(api, change.by, row, subresource, tree, &old.tree)?;
    if change.part == Part::Main {
        admit::allocate(api, row, tree, Some(&old.tree))?;
    }
    Ok(())
}

/// Writes the new version. `None`: somebody else changed the object first.
async fn write(
    api: &Api,
    change: Change<'_>,
    stored: &Stored,
    old: Document,
    mut document: Document,
) -> Result<Option<Outcome>> {
    let row = change.at.row;
    let last = meta::is_deleting(&document.tree) && may_go(row.kind, &document.tree);
    let durability = if row.kind == "Lease" && kinds::lease::is_renewal(&old.tree, &document.tree) {
        Durability::Lazy
    } else {
        Durability::Synced
    };
    let version = stored.modified.to_string();
    present::to_stored(row, &mut document.tree);
    let (value, head) = document
        .encode(registry::stored_row(row))
        .map_err(ApiError::internal)?;
    if value == stored.value && !last {
        return Ok(Some(Outcome::Stored(Arc::clone(stored))));
    }
    if change.dry_run {
        present::to_view(row, &mut document.tree);
        meta::of(&mut document.tree).insert("resourceVersion".into(), version.into());
        return Ok(Some(Outcome::Unstored(document)));
    }
    let (key, expected) = (change.at.key(), stored.modified);
    let op = if last {
        Op::Delete { key, expected }
    } else {
        Op::Update {
            key,
            expected,
            value,
            head,
            durability,
        }
    };
    // As in a create: no tree waits for the disk unless it is shown afterwards.
    drop(old);
    let shown = last.then_some(document);
    match (api.store.write(op).await, shown) {
        (Ok(written), Some(mut document)) => {
            present::to_view(row, &mut document.tree);
            let version = written.revision.to_string();
            meta::of(&mut document.tree).insert("resourceVersion".into(), version.into());
            Ok(Some(Outcome::Unstored(document)))
        }
        (Ok(written), None) => Ok(Some(Outcome::Stored(written.record))),
        (Err(WriteError::Stale(_)), _) => Ok(None),
        (Err(WriteError::Missing), _) => Err(ApiError::not_found(row, change.at.name)),
        (Err(error), _) => Err(store_failed(&error)),
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
pub(super) fn may_go(kind: &str, tree: &Value) -> bool {
    let grace_over = tree["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0)
        == 0;
    let emptied = kind != "Namespace"
        || tree["spec"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty);
    grace_over && emptied && !meta::has_finalizers(tree)
}

/// The revision a body was made from.
pub(super) fn expected_version(tree: &Value) -> Result<Option<u64>> {
    let text = meta::text(tree, "resourceVersion");
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    parse_version(text).map(Some)
}

fn must_have_version(at: &At<'_>) -> ApiError {
    use crate::field::{FieldError, Path};
    let path = Path::new("metadata");
    let path = path.child("resourceVersion");
    let words = "must be specified for an update";
    let error = FieldError::invalid_shown(&path, "0x0".to_owned(), words);
    ApiError::invalid(at.row, at.name, &[error])
}

/// The object in a body must be the one that the URL names.
pub(super) fn check_name(at: &At<'_>, tree: &Value) -> Result<()> {
    let (name, url) = (meta::text(tree, "name"), at.name);
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
    let namespace = meta::text(tree, "namespace");
    match at.namespace {
        Some(url) if !namespace.is_empty() && namespace != url => {
            Err(ApiError::bad_request(format!(
                "the namespace of the object ({namespace}) does not match the namespace on the URL ({url})"
            )))
        }
        _ => Ok(()),
    }
}

/// A body that names another uid speaks of another object.
fn check_uid(at: &At<'_>, new: &Value, old: &Value) -> Result<()> {
    let (given, actual) = (meta::text(new, "uid"), meta::text(old, "uid"));
    if given.is_empty() || given == actual {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {given}, UID in object meta: {actual}");
    Err(ApiError::conflict(at.row, at.name, &why))
}

/// The right to update is not the right to create: what a PUT would make needs both.
fn check_may_create(api: &Api, user: &User, at: &At<'_>) -> Result<()> {
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
    decoded: &decode::Decoded,
    dry_run: bool,
) -> Result<Reply> {
    check_may_create(api, &call.user, &at)?;
    let mut document = decoded.document.clone();
    meta::of(&mut document.tree).remove("resourceVersion");
    let mut warnings = decoded.warnings.clone();
    let created = insert(
        api,
        &call.user,
        at.row,
        at.namespace,
        document,
        dry_run,
        &mut warnings,
    )
    .await?;
    let presenter = call.presenter(at.row)?;
    let bytes = match created {
        Created::Stored(stored) => presenter.one(&stored, stored.modified)?,
        Created::Dry(document) => presenter.document(document)?,
    };
    Ok(Reply::json(201, bytes).with_warnings(warnings))
}
