//! Nobody grants what they do not hold: roles and bindings are written only by those who have all of their
//! rules themselves, or the explicit right to `escalate` or to `bind`.

use std::sync::Arc;

use kennel_types::Verb;
use serde_json::Value;

use crate::api::Api;
use crate::authorize::rbac::{Rule, cover};
use crate::authorize::{Attributes, ResourceAttributes};
use crate::kinds::rbac::GROUP;
use crate::kinds::tree::{carry, has, remove, same, text};
use crate::registry::{self, Resource};
use crate::request::{MASTERS, User};
use crate::status::{ApiError, Result};

/// Checks a role or binding that somebody wants to write.
pub(super) fn check(
    api: &Api,
    user: &User,
    row: &'static Resource,
    new: &Value,
    old: Option<&Value>,
) -> Result<()> {
    if user.is_in(MASTERS) || old.is_some_and(|old| only_collected(new, old)) {
        return Ok(());
    }
    let author = Author {
        api,
        user,
        row,
        namespace: text(new, "metadata.namespace"),
        name: text(new, "metadata.name"),
    };
    match row.kind {
        "Role" | "ClusterRole" => author.write_role(new, old),
        _ => author.write_binding(new),
    }
}

/// Whether nothing changes but what garbage collection writes before an object goes.
fn only_collected(new: &Value, old: &Value) -> bool {
    let (mut new, mut old) = (new.clone(), old.clone());
    for field in ["metadata.ownerReferences", "metadata.finalizers"] {
        carry(&mut new, &old, field);
    }
    for tree in [&mut new, &mut old] {
        remove(tree, "metadata.resourceVersion");
        remove(tree, "metadata.managedFields");
    }
    same(&new, &old)
}

struct Author<'a> {
    api: &'a Api,
    user: &'a User,
    row: &'static Resource,
    /// Of the object; empty for those of the cluster.
    namespace: &'a str,
    /// Of the object.
    name: &'a str,
}

impl Author<'_> {
    fn write_role(&self, new: &Value, old: Option<&Value>) -> Result<()> {
        // A create is of no name yet, as far as rights go.
        let name = old.map_or("", |_| self.name);
        if self.may(Verb::Escalate, self.row.plural, name) {
            return Ok(());
        }
        self.must_hold(&Rule::all_of(new))?;
        // What gathers the rules of others may gather anything.
        let gathers = |role: &Value| has(role, "aggregationRule");
        if (gathers(new) || old.is_some_and(gathers)) && self.must_hold(&everything()).is_err() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(ApiError::forbidden(self.row, self.name, why));
        }
        Ok(())
    }

    fn write_binding(&self, binding: &Value) -> Result<()> {
        let (plural, namespace) = match text(binding, "roleRef.kind") {
            "ClusterRole" => ("clusterroles", ""),
            "Role" => ("roles", self.namespace),
            // Validation says what is wrong with it.
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
        rules.ok_or_else(|| match registry::find(GROUP, "v1", plural) {
            Some(row) => ApiError::not_found(row, name),
            None => ApiError::no_such_resource(),
        })
    }

    /// Whether the user has one of the verbs that are made for this.
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

/// What a cluster's administrator holds.
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
