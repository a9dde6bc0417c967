//! One write of an object: upstream's chain of field managers.

use std::sync::LazyLock;

use kennel_types::Timestamp;
use serde_json::{Value, json};
use thiserror::Error;

use super::cap::cap;
use super::conflict::Conflicts;
use super::entry::{Manager, Managers, Operation, Owned};
use super::field_set::FieldSet;
use super::last_applied;
use super::ownership::Ownership;
use super::schema::Schema;
use super::typed::{Comparison, Duplicates, TypeErrors, compare, validate};
use super::updater::{Failure, Merged, Updater};

/// The manager of what was there before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager of a write whose client does not name itself.
const UNKNOWN: &str = "unknown";

/// A write of one object of a resource.
#[derive(Clone, Copy)]
pub struct FieldManager<'a, S> {
    pub schema: S,
    /// The name of the manager: `fieldManager`, or the beginning of the user agent.
    pub manager: &'a str,
    /// The version in which the objects are.
    pub api_version: &'a str,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// Whether the kind has a version. Managers that wrote another are forgotten.
    pub is_version: &'a dyn Fn(&str) -> bool,
    /// Fields that a write through this resource cannot change, with everything below them.
    pub ignored: &'a FieldSet,
    /// In whole seconds.
    pub now: Timestamp,
}

/// The result of an apply.
#[derive(Debug)]
pub struct Applied {
    pub object: Value,
    pub managers: Managers,
}

/// Why an apply is refused.
#[derive(Debug, Error)]
pub enum ApplyError {
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration does not fit the schema.
    #[error("{0}")]
    Config(TypeErrors),
    /// The live object does not fit the schema.
    #[error("{0}")]
    Live(TypeErrors),
    #[error("{0}: {1}")]
    Types(&'static str, TypeErrors),
}

impl From<Failure> for ApplyError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflicts(conflicts) => Self::Conflicts(conflicts),
            Failure::Types(what, errors) => Self::Types(what, errors),
        }
    }
}

impl<S: Schema> FieldManager<'_, S> {
    /// The managers of a new object. It has no `metadata.managedFields`; `requested` are the managers that its creator
    /// named there.
    pub fn create(&self, new: &Value, requested: Managers) -> Ownership {
        if requested.is_empty() && self.owns_surely(new) {
            return self.own_everything();
        }
        self.replace(&empty_object(), new, Ownership::Listed(requested))
    }

    /// The managers after a write that replaces `live` with `new`. Neither has `metadata.managedFields`.
    ///
    /// An object without managers gets none: its managers are recorded from the first apply on. One
    /// that does not fit its schema keeps its managers.
    pub fn update(&self, live: &Value, new: &Value, ownership: Ownership) -> Ownership {
        if ownership.is_empty() {
            return ownership;
        }
        self.replace(live, new, ownership)
    }

    pub(super) fn replace(&self, live: &Value, new: &Value, ownership: Ownership) -> Ownership {
        let Ok(compared) = self.updater().compare(live, new) else {
            return ownership;
        };
        if let Ownership::Relative(managers) = &ownership
            && let Some(updated) = self.update_relative(&compared, managers, new)
        {
            return Ownership::Relative(updated);
        }
        let mut managers = ownership.list(self.schema, self.api_version, live);
        self.forget_other_versions(&mut managers);
        Ownership::Listed(cap(self.record(&compared, managers, self.manager)))
    }

    /// Gives the fields that changed to the manager of an update.
    fn record(&self, compared: &Comparison, managers: Managers, name: &str) -> Managers {
        // A manager of its own, so that what this write changed can be told from what the manager had.
        let itself = Manager {
            name: String::new(),
            operation: Operation::Update,
            api_version: String::new(),
            subresource: String::new(),
        };
        let mut managers = self.updater().update(compared, managers, &itself);
        let Some(written) = managers.0.remove(&itself) else {
            return managers;
        };
        let fields = written.fields.difference(&STRIPPED);
        if fields.is_empty() {
            return managers;
        }
        let manager = self.identity(name, Operation::Update);
        let before = managers.0.remove(&manager);
        let fields = match before {
            Some(before) => fields.union(&before.fields),
            None => fields,
        };
        let owned = Owned {
            fields,
            api_version: self.api_version.to_owned(),
            time: Some(self.now),
        };
        managers.0.insert(manager, owned);
        managers
    }

    /// Applies a configuration to an object; `live` is none if there is no object yet. Neither has
    /// `metadata.managedFields`. The result may have nulls and lacks defaults.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        managers: Managers,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let none = empty_object();
        let live = live.unwrap_or(&none);
        let takes_over = self.manager == last_applied::MANAGER;
        // Only who takes over may have to begin again.
        let before = takes_over.then(|| managers.clone());
        let merged = match (self.merge(live, config, managers, force), before) {
            (Err(ApplyError::Conflicts(conflicts)), Some(before)) => {
                let allowed = last_applied::owned_fields(self.schema, self.api_version, live);
                let left = match allowed {
                    Some(allowed) => conflicts.without(&allowed),
                    None => Some(conflicts),
                };
                if let Some(left) = left {
                    return Err(ApplyError::Conflicts(left));
                }
                self.merge(live, config, before, true)?
            }
            (merged, _) => merged?,
        };
        let mut object = merged.object.unwrap_or_else(|| live.clone());
        if takes_over {
            last_applied::refresh(&mut object, config);
        }
        Ok(Applied {
            object,
            managers: merged.managers,
        })
    }

    fn merge(
        &self,
        live: &Value,
        config: &Value,
        mut managers: Managers,
        force: bool,
    ) -> Result<Merged, ApplyError> {
        if managers.is_empty() {
            let compared = self.updater().compare(&empty_object(), live);
            let compared = compared.map_err(ApplyError::Live)?;
            managers = self.record(&compared, managers, BEFORE_FIRST_APPLY);
        }
        self.forget_other_versions(&mut managers);
        validate(self.schema, config, Duplicates::Refuse).map_err(ApplyError::Config)?;
        validate(self.schema, live, Duplicates::Allow).map_err(ApplyError::Live)?;
        let manager = self.identity(self.manager, Operation::Apply);
        let mut merged = self
            .updater()
            .apply(live, config, managers, &manager, force)?;
        if let Some(owned) = merged.managers.0.get_mut(&manager) {
            owned.fields = std::mem::take(&mut owned.fields).difference(&STRIPPED);
            if merged.object.is_some() {
                owned.time = Some(self.now);
            }
            if owned.fields.is_empty() {
                merged.managers.0.remove(&manager);
            }
        }
        Ok(merged)
    }

    /// As upstream, whose converter misses their version.
    fn forget_other_versions(&self, managers: &mut Managers) {
        managers.0.retain(|_, owned| self.knows(&owned.api_version));
    }

    /// Whether the kind has this version.
    pub(super) fn knows(&self, api_version: &str) -> bool {
        api_version == self.api_version || (self.is_version)(api_version)
    }

    fn updater(&self) -> Updater<'_, S> {
        Updater {
            schema: self.schema,
            api_version: self.api_version,
            ignored: self.ignored,
        }
    }

    pub(super) fn identity(&self, name: &str, operation: Operation) -> Manager {
        Manager {
            name: if name.is_empty() { UNKNOWN } else { name }.to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => self.api_version.to_owned(),
            },
            subresource: self.subresource.to_owned(),
        }
    }
}

fn empty_object() -> Value {
    json!({})
}

/// Fields that nobody owns.
pub(super) static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_names(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// The fields of an object that a manager can own: what its creator would, had nobody else written.
pub(super) fn all_fields<S: Schema>(schema: S, object: &Value) -> FieldSet {
    let compared = compare(schema, &empty_object(), object).unwrap_or_default();
    compared
        .added
        .union(&compared.modified)
        .difference(&STRIPPED)
}
