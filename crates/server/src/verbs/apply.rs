//! Server-side apply: PATCH with `application/apply-patch+yaml`.

use kennel_core::managed_fields::{Applied, ApplyError, Conflicts, Managers, Ownership};
use kennel_types::Reason;
use serde_json::{Map, Value};

use super::call::Call;
use super::create::{self, New};
use super::managed_fields::{self, Author};
use super::patch::{check_identity, conditional_version};
use super::update::{Change, Changed, Edit, check_may_create, check_name, modify, reply};
use super::{At, decode};
use crate::admit::Notes;
use crate::api::Api;
use crate::field::{FieldError, Path};
use crate::object::Document;
use crate::registry::Part;
use crate::request::path::Place;
use crate::request::query::{FieldValidation, invalid_option};
use crate::response::Reply;
use crate::schema::{self, go, parse_yaml};
use crate::status::{ApiError, Result};
use crate::tree::{self, text};

pub(super) const MEDIA_TYPE: &str = "application/apply-patch+yaml";

/// A request to apply a configuration.
struct Request<'a> {
    at: At<'a>,
    part: Part,
    author: Author<'a>,
    config: Value,
    /// The duplicate keys in the configuration.
    duplicates: Vec<String>,
    validation: FieldValidation,
    force: bool,
    dry_run: bool,
    body: &'a [u8],
}

/// Applies a configuration to an object or to one part of it.
pub(super) async fn apply(api: &Api, call: &Call, place: &Place, part: Part) -> Result<Reply> {
    let request = Request::of(call, place, part)?;
    call.presenter(request.at.row)?;
    let at = request.at;
    // The status of an object that does not exist cannot be applied.
    if part == Part::Main && api.store.get(&at.key()).is_none() {
        match request.create(api, call).await {
            // Another request created it meanwhile.
            Err(error) if error.reason == Reason::AlreadyExists => {}
            other => return other,
        }
    }
    let change = Change {
        at,
        by: request.author,
        part,
        dry_run: request.dry_run,
    };
    let changed = modify(api, change, |old| request.edit(old)).await?;
    reply(call, at.row, 200, changed)
}

impl<'a> Request<'a> {
    fn of(call: &'a Call, place: &'a Place, part: Part) -> Result<Self> {
        let manager = call.query.get("fieldManager").unwrap_or_default();
        if manager.is_empty() {
            let path = Path::new("fieldManager");
            let error = FieldError::required(&path, "is required for apply patch");
            return Err(invalid_option("PatchOptions", error));
        }
        call.query.check_field_manager("PatchOptions")?;
        let dry_run = call.query.dry_run("PatchOptions")?;
        let validation = call.query.field_validation("PatchOptions")?;
        let (config, duplicates) = decode_config(&call.body)?;
        let request = Self {
            at: At::of(place)?,
            part,
            author: Author {
                user: &call.user,
                manager,
            },
            config,
            duplicates,
            validation,
            force: call.query.lenient_flag("force"),
            dry_run,
            body: &call.body,
        };
        request.check()?;
        Ok(request)
    }

    /// Refuses a configuration of another kind and one that sets managers.
    fn check(&self) -> Result<()> {
        let row = self.at.row;
        let version = text(&self.config, "apiVersion");
        let is_kind = version == row.api_version() && text(&self.config, "kind") == row.kind;
        if !is_kind {
            let found = kind_of(&self.config);
            return Err(ApiError::bad_request(format!(
                "invalid object type: {found}"
            )));
        }
        if tree::at(&self.config, "metadata.managedFields").is_array() {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        Ok(())
    }

    /// Creates the object, with the rights of a create.
    async fn create(&self, api: &Api, call: &Call) -> Result<Reply> {
        let At {
            row,
            namespace,
            name,
        } = self.at;
        let applied = self.merge(None, Managers::default())?;
        let mut notes = Notes::from(self.duplicates()?);
        let uid = text(&applied.object, "metadata.uid").to_owned();
        let document = self.document(applied.object)?;
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(row, name, &why));
        }
        check_name(&self.at, &document.tree)?;
        check_may_create(api, &call.user, &self.at)?;
        let new = New {
            author: self.author,
            row,
            namespace,
            document,
            managers: Some(applied.managers),
        };
        let outcome = create::insert(api, new, self.dry_run, &mut notes).await?;
        reply(call, row, 201, Changed { outcome, notes })
    }

    /// The new version of an existing object.
    fn edit(&self, old: &Document) -> Result<Edit> {
        let managers = old.managers(self.at.row);
        let applied = self.merge(Some(&old.tree), managers.clone())?;
        let warnings = self.duplicates()?;
        if applied.object == old.tree && applied.managers.same_but_times(&managers) {
            // The stored form of the managers needs not be computed again.
            return Ok(Edit {
                document: old.clone(),
                expected: None,
                warnings,
                ownership: Some(old.ownership.clone()),
            });
        }
        let document = self.document(applied.object)?;
        check_identity(&self.at, &document.tree, &old.tree)?;
        let expected = conditional_version(&document.tree, &old.tree)?;
        Ok(Edit {
            document,
            expected,
            warnings,
            ownership: Some(Ownership::Listed(applied.managers)),
        })
    }

    fn merge(&self, live: Option<&Value>, managers: Managers) -> Result<Applied> {
        let manager = self.author.manager;
        let applied = managed_fields::write(self.at.row, self.part, manager, |fields| {
            fields.apply(live, &self.config, managers, self.force)
        })?;
        applied.map_err(|error| self.refusal(error, live))
    }

    fn refusal(&self, error: ApplyError, live: Option<&Value>) -> ApiError {
        match error {
            ApplyError::Conflicts(conflicts) => conflict(&conflicts),
            ApplyError::Config(errors) => {
                let object = identity(&self.config);
                let message = format!("failed to create typed patch object ({object}): {errors}");
                ApiError::without_reason(message)
            }
            ApplyError::Live(errors) => {
                let object = identity(live.unwrap_or(&Value::Null));
                let message = format!("failed to create typed live object ({object}): {errors}");
                ApiError::without_reason(message)
            }
            other @ ApplyError::Types(..) => ApiError::without_reason(other.to_string()),
        }
    }

    /// The object that an apply results in, checked against the types of its fields.
    fn document(&self, mut object: Value) -> Result<Document> {
        let refuse = |why: String| {
            let object = identity(&self.config);
            let message =
                format!("failed to convert new object ({object}) to proper version: {why}");
            ApiError::without_reason(message)
        };
        decode::conform(
            self.at.row,
            &mut object,
            Vec::new(),
            FieldValidation::Ignore,
            refuse,
        )?;
        Ok(Document::from_body(self.at.row, object, self.body))
    }

    /// The warnings about duplicate keys, or the refusal.
    fn duplicates(&self) -> Result<Vec<String>> {
        match self.validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            _ if self.duplicates.is_empty() => Ok(Vec::new()),
            FieldValidation::Warn => Ok(self.duplicates.clone()),
            FieldValidation::Strict => Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: \
                 yaml: unmarshal errors:\n  {}",
                self.duplicates.join("\n  ")
            ))),
        }
    }
}

/// The object in a body, and its duplicate keys.
fn decode_config(body: &[u8]) -> Result<(Value, Vec<String>)> {
    let undecodable = |why: String| ApiError::bad_request(format!("error decoding YAML: {why}"));
    let schema::Yaml { value, duplicates } =
        parse_yaml(body).map_err(|error| undecodable(error.to_string()))?;
    match value {
        Value::Object(_) => Ok((value, duplicates)),
        Value::Null => Ok((Value::Object(Map::new()), duplicates)),
        other => {
            let json = go::json_type(&other);
            Err(undecodable(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {json} into \
                 Go value of type map[string]interface {{}}"
            )))
        }
    }
}

/// `group/version, Kind=kind` of an object.
fn kind_of(object: &Value) -> String {
    let version = text(object, "apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text(object, "kind"))
}

/// An object as the messages of apply name it.
fn identity(object: &Value) -> String {
    let (namespace, name) = (
        text(object, "metadata.namespace"),
        text(object, "metadata.name"),
    );
    format!("{namespace}/{name}; {}", kind_of(object))
}

fn conflict(conflicts: &Conflicts) -> ApiError {
    let causes = conflicts.as_slice().iter().map(|conflict| {
        let message = format!("conflict with {}", conflict.manager());
        (message, conflict.field())
    });
    ApiError::apply_conflict(conflicts.to_string(), causes)
}
