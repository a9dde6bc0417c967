//! Conflicts of an apply: fields that it changes and that other managers own.

use std::fmt;

use serde_json::json;

use super::entry::{Manager, Operation};
use super::field_set::FieldSet;
use super::path_element::PathElement;
use crate::go::{json as go_json, quote};

/// A field that an apply changes and that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    manager: Manager,
    path: Vec<PathElement>,
}

impl Conflict {
    /// The field as messages show it: `.spec.ports[name="x"].port`.
    pub fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }

    /// The manager as messages show it.
    pub fn manager(&self) -> String {
        let Manager {
            name,
            operation,
            api_version,
            subresource,
        } = &self.manager;
        let mut shown = quote(name);
        if !subresource.is_empty() {
            shown = format!("{shown} with subresource {}", quote(subresource));
        }
        if *operation == Operation::Update {
            shown = format!("{shown} using {api_version}");
        }
        shown
    }
}

/// All conflicts of an apply, by manager. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    /// The conflicts about these fields of these managers; none if there are no fields.
    pub(super) fn of(fields: &[(&Manager, FieldSet)]) -> Option<Self> {
        let mut sorted: Vec<&(&Manager, FieldSet)> = fields.iter().collect();
        sorted.sort_by_cached_key(|(manager, _)| identifier(manager));
        let conflicts: Vec<Conflict> = sorted
            .into_iter()
            .flat_map(|(manager, fields)| {
                fields.paths().into_iter().map(|path| Conflict {
                    manager: (*manager).clone(),
                    path,
                })
            })
            .collect();
        (!conflicts.is_empty()).then_some(Self(conflicts))
    }

    pub fn as_slice(&self) -> &[Conflict] {
        &self.0
    }

    /// The conflicts about other fields than these; none if there are none.
    pub(super) fn without(self, allowed: &FieldSet) -> Option<Self> {
        let is_left = |conflict: &Conflict| !allowed.has(&conflict.path);
        let left: Vec<Conflict> = self.0.into_iter().filter(is_left).collect();
        (!left.is_empty()).then_some(Self(left))
    }
}

/// What upstream sorts managers by: their identifier in JSON.
fn identifier(manager: &Manager) -> String {
    let member = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!("\"{name}\":{},", go_json::to_string(&json!(value))),
    };
    let members = [
        member("manager", &manager.name),
        member("operation", manager.operation.as_str()),
        member("apiVersion", &manager.api_version),
        member("subresource", &manager.subresource),
    ];
    format!("{{{}}}", members.concat().trim_end_matches(','))
}

/// Upstream's message, in upstream's order: by manager, then by level.
impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            let (manager, field) = (conflict.manager(), conflict.field());
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {manager}: {field}"
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let by_manager = self.0.chunk_by(|a, b| a.manager == b.manager);
        for (at, conflicts) in by_manager.enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}conflicts with {}:", conflicts[0].manager())?;
            for conflict in conflicts {
                write!(f, "\n- {}", conflict.field())?;
            }
        }
        Ok(())
    }
}
