//! Admission of RBAC objects: prevents privilege escalation. A user may write a role or a binding only with
//! all of its rules as own rights, or with the `escalate` or `bind` right.

use std::sync::Arc;

use kennel_types::Verb;
use serde_json::Value;

use super::{Admission, Write};
use crate::api::Api;
use crate::authorize::rbac::{Rule, cover};
use crate::authorize::{Attributes, ResourceAttributes};
use crate::kinds::rbac::{CLUSTER_ROLE, GROUP, ROLE};
use crate::registry::{self, Resource};
use crate::request::{MASTERS, User};
use crate::status::{ApiError, Result};
use crate::tree::{copy_from_old, has, remove, same, text};

/// The admission of `Role` and `ClusterRole`.
pub(crate) struct RoleAdmission;

impl Admission for RoleAdmission {
    fn create(&self, write: Write<'_>, role: &mut Value) -> Result<()> {
        check(write, role, None, |author| author.write_role(role, None))
    }

    fn update(&self, write: Write<'_>, new: &mut Value, old: &Value) -> Result<()> {
        let new = &*new;
        check(write, new, Some(old), |author| {
            author.write_role(new, Some(old))
        })
    }
}

/// The admission of `RoleBinding` and `ClusterRoleBinding`.
pub(crate) struct BindingAdmission;

impl Admission for BindingAdmission {
    fn create(&self, write: Write<'_>, binding: &mut Value) -> Result<()> {
        check(write, binding, None, |author| author.write_binding(binding))
    }

    fn update(&self, write: Write<'_>, new: &mut Value, old: &Value) -> Result<()> {
        let new = &*new;
        check(write, new, Some(old), |author| author.write_binding(new))
    }
}

/// Applies the rules to everybody but masters and to all changes but those of the garbage collector.
fn check(
    write: Write<'_>,
    new: &Value,
    old: Option<&Value>,
    rules: impl FnOnce(&Author<'_>) -> Result<()>,
) -> Result<()> {
    let Write { api, user, row, .. } = write;
    if user.is_in(MASTERS) || old.is_some_and(|old| only_collected(new, old)) {
        return Ok(());
    }
    rules(&Author {
        api,
        user,
        row,
        namespace: text(new, "metadata.namespace"),
        name: text(new, "metadata.name"),
    })
}

/// Whether nothing changes but what the garbage collector writes before it deletes an object.
fn only_collected(new: &Value, old: &Value) -> bool {
    let (mut new, mut old) = (new.clone(), old.clone());
    for field in ["metadata.ownerReferences", "metadata.finalizers"] {
        copy_from_old(&mut new, &old, field);
    }
    for tree in [&mut new, &mut old] {
        remove(tree, "metadata.resourceVersion");
        remove(tree, "metadata.managedFields");
    }
    same(&new, &old)
}

/// The user who writes an RBAC object.
struct Author<'a> {
    api: &'a Api,
    user: &'a User,
    row: &'static Resource,
    /// The namespace of the object; empty for cluster-scoped objects.
    namespace: &'a str,
    /// The name of the object.
    name: &'a str,
}

impl Author<'_> {
    fn write_role(&self, new: &Value, old: Option<&Value>) -> Result<()> {
        // As upstream, the right to create a role is checked without its name.
        let name = old.map_or("", |_| self.name);
        if self.may(Verb::Escalate, self.row.plural, name) {
            return Ok(());
        }
        self.must_hold(&Rule::all_of(new))?;
        // An aggregated role may collect any rule.
        let aggregates = |role: &Value| has(role, "aggregationRule");
        if (aggregates(new) || old.is_some_and(aggregates))
            && self.must_hold(&everything()).is_err()
        {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(ApiError::forbidden(self.row, self.name, why));
        }
        Ok(())
    }

    fn write_binding(&self, binding: &Value) -> Result<()> {
        let (plural, namespace) = match text(binding, "roleRef.kind") {
            CLUSTER_ROLE => ("clusterroles", ""),
            ROLE => ("roles", self.namespace),
            // Validation refuses it.
            _ => return Ok(()),
        };
        let name = text(binding, "roleRef.name");
        if self.may(Verb::Bind, plural, name) {
            return Ok(());
        }
        self.must_hold(&self.rules_of(plural, namespace, name)?)
    }

    fn rules_of(&self, plural: &str, namespace: &str, name: &str) -> Result<Arc<[Rule]>> {
        let rules = self.api.authorizer.rbac.role(namespace, name);
        rules.ok_or_else(|| ApiError::not_found(registry::served(GROUP, plural), name))
    }

    /// Whether the user has the `escalate` or `bind` right.
    fn may(&self, verb: Verb<'_>, plural: &str, name: &str) -> bool {
        let asked = ResourceAttributes {
            verb,
            group: GROUP,
            version: "*",
            resource: plural,
            namespace: self.namespace,
            name,
            ..ResourceAttributes::default()
        };
        let authorizer = &self.api.authorizer;
        authorizer.allows(self.user, &Attributes::Resource(asked))
    }

    fn must_hold(&self, rules: &[Rule]) -> Result<()> {
        let rbac = &self.api.authorizer.rbac;
        let (held, errors) = rbac.rules(self.user, self.namespace);
        let held: Vec<&Rule> = held.iter().flat_map(|rules| rules.iter()).collect();
        let missing = cover::missing(&held, rules);
        if missing.is_empty() {
            return Ok(());
        }
        let User { name, groups, .. } = self.user;
        let mut why = format!(
            "user {name:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            cover::quoted(groups),
            cover::described(missing),
        );
        if let Some(errors) = errors {
            why = format!("{why}; resolution errors: [{errors}]");
        }
        Err(ApiError::forbidden(self.row, self.name, &why))
    }
}

/// The rules of `cluster-admin`.
fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = Rule {
        verbs: all(),
        groups: all(),
        resources: all(),
        ..Rule::default()
    };
    let paths = Rule {
        verbs: all(),
        urls: all(),
        ..Rule::default()
    };
    [resources, paths]
}
