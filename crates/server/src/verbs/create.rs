//! Create.

use bytes::Bytes;
use kennel_core::managed_fields::{Managers, Ownership};
use kennel_store::{Op, WriteError};
use kennel_types::Reason;
use serde_json::Value;

use super::call::Call;
use super::decode::{self, Decoded};
use super::managed_fields::{self, Author};
use super::meta;
use super::update::{Changed, Outcome, reply};
use crate::admit::{self, Notes};
use crate::api::Api;
use crate::field::Path;
use crate::kinds;
use crate::object::{self, Document, Head, Stored};
use crate::quota::Writer;
use crate::registry::{self, Part, Resource};
use crate::request::path::Place;
use crate::request::{SERVER, User};
use crate::response::Reply;
use crate::status::{ApiError, Result};
use crate::tree::{self, text};

/// How many generated names are tried before the request fails with `AlreadyExists`.
const NAME_ATTEMPTS: usize = 8;

pub(super) async fn create(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let row = place.row;
    // Refuses an unacceptable form before anything is stored.
    call.presenter(row)?;
    let dry_run = call.query.dry_run("CreateOptions")?;
    call.query.check_field_manager("CreateOptions")?;
    let decoded = decode::object(call, row, "CreateOptions")?;
    create_decoded(api, call, row, place.namespace.as_deref(), decoded, dry_run).await
}

/// Creates the object in a POST, or in a PUT to an object that does not exist.
pub(super) async fn create_decoded(
    api: &Api,
    call: &Call,
    row: &'static Resource,
    namespace: Option<&str>,
    decoded: Decoded,
    dry_run: bool,
) -> Result<Reply> {
    let Decoded { document, warnings } = decoded;
    let mut notes = Notes::from(warnings);
    let manager = call.manager();
    let new = New {
        author: Author {
            user: &call.user,
            manager: &manager,
        },
        row,
        namespace,
        document,
        managers: None,
    };
    let outcome = insert(api, new, dry_run, &mut notes).await?;
    reply(call, row, 201, Changed { outcome, notes })
}

/// An object to create.
pub(super) struct New<'a> {
    pub(super) author: Author<'a>,
    pub(super) row: &'static Resource,
    pub(super) namespace: Option<&'a str>,
    pub(super) document: Document,
    /// The managers that an apply leaves; none for any other create.
    pub(super) managers: Option<Managers>,
}

/// Defaults, admits, validates and stores a decoded object.
pub(super) async fn insert(
    api: &Api,
    new: New<'_>,
    dry_run: bool,
    notes: &mut Notes,
) -> Result<Outcome> {
    let New {
        author,
        row,
        namespace,
        mut document,
        managers,
    } = new;
    let tree = &mut document.tree;
    let given_uid = text(tree, "metadata.uid").to_owned();
    meta::prepare_create(tree, namespace)?;
    let generated = meta::generate_name(tree);
    check_damaged(api, author.user, row, namespace, tree, given_uid)?;
    row.strategy.default(tree);
    document.ownership = match managers {
        Some(managers) => Ownership::Listed(managers),
        None => managed_fields::of_create(row, author.manager, tree)?,
    };
    let requested = managed_fields::before_own_change(row, Part::Main, &document, &Value::Null);
    let tree = &mut document.tree;
    row.strategy.prepare_create(tree);
    let _lock = admit::lock(api, row).await?;
    let write = admit::Write {
        api,
        user: author.user,
        row,
        namespace,
    };
    admit::create(write, tree)?;
    validate(row, tree)?;
    row.admission.allocate(write, tree, None)?;
    row.admission
        .validate(write, Part::Main, tree, None, notes)?;
    // Held until the object is stored.
    let _reservation = admit::quota::reserve(write, tree, None)?;
    notes.warnings.extend(row.strategy.warnings(tree, None));
    if let Some(requested) = requested {
        let ownership = std::mem::take(&mut document.ownership);
        document.ownership =
            managed_fields::after_own_change(row, ownership, &requested, &document.tree, &[])?;
    }
    if dry_run {
        return dry_run_result(api, row, namespace, document);
    }
    if generated {
        return insert_generated(api, author.user, row, namespace, document).await;
    }
    let entry = Entry::of(row, namespace, &document)?;
    api.admit_growth(Writer::of(author.user, row), 0, entry.value.len())?;
    // Freed before the disk is waited for: the waiting future stays small, and the memory is reused while
    // it is still in the processor's cache.
    drop(document);
    store(api, row, entry).await.map(Outcome::Stored)
}

/// Refuses a new object of the name of a damaged one. One that gives a uid is the repaired object and keeps that uid, so that
/// what it owns remains its own. The server itself creates the objects of every cluster again.
fn check_damaged(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    tree: &mut Value,
    given_uid: String,
) -> Result<()> {
    let Err(damaged) = api.check_damaged(row, namespace, text(tree, "metadata.name")) else {
        return Ok(());
    };
    if uuid::Uuid::try_parse(&given_uid).is_ok() {
        tree::set(tree, "metadata.uid", given_uid.into());
    } else if user.name != SERVER {
        return Err(damaged);
    }
    Ok(())
}

/// Stores an object with a generated name; generates another one if it is taken.
async fn insert_generated(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    mut document: Document,
) -> Result<Outcome> {
    let mut attempts = NAME_ATTEMPTS;
    loop {
        attempts -= 1;
        let entry = Entry::of(row, namespace, &document)?;
        api.admit_growth(Writer::of(user, row), 0, entry.value.len())?;
        match store(api, row, entry).await {
            Err(error) if error.reason == Reason::AlreadyExists && attempts > 0 => {
                tree::remove(&mut document.tree, "metadata.name");
                meta::generate_name(&mut document.tree);
            }
            Err(error) if error.reason == Reason::AlreadyExists => {
                let name = text(&document.tree, "metadata.name");
                return Err(ApiError::no_unique_name(row, name));
            }
            outcome => return outcome.map(Outcome::Stored),
        }
    }
}

fn validate(row: &Resource, tree: &Value) -> Result<()> {
    let path = Path::new("metadata");
    let mut errors =
        kinds::meta::validate_create(&tree["metadata"], row.namespaced(), row.name_rule, &path);
    errors.extend(row.strategy.validate_create(tree));
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(row, text(tree, "metadata.name"), &errors))
}

fn dry_run_result(
    api: &Api,
    row: &'static Resource,
    namespace: Option<&str>,
    mut document: Document,
) -> Result<Outcome> {
    let name = text(&document.tree, "metadata.name");
    if api.store.get(&object::key(row, namespace, name)).is_some() {
        return Err(ApiError::already_exists(row, name));
    }
    tree::remove(&mut document.tree, "metadata.resourceVersion");
    Ok(Outcome::Unstored(document))
}

/// An encoded object with its key.
struct Entry {
    name: String,
    key: String,
    value: Bytes,
    head: Head,
}

impl Entry {
    fn of(row: &'static Resource, namespace: Option<&str>, document: &Document) -> Result<Self> {
        let name = text(&document.tree, "metadata.name").to_owned();
        let encoded = if row.conversion.is_some() {
            let mut converted = document.clone();
            row.convert_to_stored(&mut converted.tree);
            converted.encode(registry::stored_row(row))
        } else {
            document.encode(row)
        };
        let (value, head) = encoded.map_err(ApiError::internal)?;
        Ok(Self {
            key: object::key(row, namespace, &name),
            name,
            value,
            head,
        })
    }
}

async fn store(api: &Api, row: &'static Resource, entry: Entry) -> Result<Stored> {
    let Entry {
        name,
        key,
        value,
        head,
    } = entry;
    let allocations = row.admission.allocations(api);
    let under_way = allocations.map(|all| all.begin(&key, 0, &value));
    let outcome = api.store.write(Op::Create { key, value, head }).await;
    if let Some(under_way) = under_way {
        under_way.end(&outcome);
    }
    match outcome {
        Ok(written) => {
            api.damaged.repaired(&written.record.key);
            Ok(written.record)
        }
        Err(WriteError::Exists(_)) => Err(ApiError::already_exists(row, &name)),
        Err(error) => Err(store_failed(&error)),
    }
}

/// The answer to a failure of the store itself.
pub(crate) fn store_failed<H>(error: &WriteError<H>) -> ApiError {
    match error {
        WriteError::Full(why) => ApiError::insufficient_storage(format!("cannot write: {why}")),
        WriteError::Unavailable(why) => ApiError::internal(format!("cannot write: {why}")),
        WriteError::TooLarge { .. } => ApiError::too_large_because(error.to_string()),
        WriteError::Unknown(why) => ApiError::internal(format!(
            "it is not known whether this was stored: {why}; read the object before you try again"
        )),
        WriteError::Closed => ApiError::unavailable("the server is shutting down"),
        _ => ApiError::internal("the store gave an unexpected answer"),
    }
}
