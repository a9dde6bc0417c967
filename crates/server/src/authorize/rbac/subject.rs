//! A binding and its subjects as the index stores them.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::kinds::rbac::{CLUSTER_ROLE, GROUP, ROLE};
use crate::registry::{Resource, Scope};
use crate::tree;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubjectKind {
    User,
    Group,
    ServiceAccount,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// Empty for a cluster role binding.
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    /// Empty for a cluster role.
    pub(super) role_namespace: Box<str>,
    pub(super) role_name: Box<str>,
    subjects: Vec<(SubjectKind, Box<str>)>,
}

impl Binding {
    pub(super) fn of(row: &Resource, binding: &Value) -> Self {
        let namespace = match row.scope {
            Scope::Namespaced => tree::text(binding, "metadata.namespace"),
            Scope::Cluster => "",
        };
        let role_namespace = match tree::text(binding, "roleRef.kind") {
            ROLE => namespace,
            _ => "",
        };
        let subjects = tree::list(binding, "subjects").iter();
        Self {
            namespace: namespace.into(),
            name: tree::text(binding, "metadata.name").into(),
            role_namespace: role_namespace.into(),
            role_name: tree::text(binding, "roleRef.name").into(),
            subjects: subjects.filter_map(|s| subject(s, namespace)).collect(),
        }
    }

    /// Service accounts by their user name.
    pub(super) fn subjects(&self) -> Vec<(SubjectKind, Box<str>)> {
        self.subjects.clone()
    }

    fn role_kind(&self) -> &'static str {
        if self.role_namespace.is_empty() {
            CLUSTER_ROLE
        } else {
            ROLE
        }
    }

    pub(super) fn is_same_object(&self, other: &Self) -> bool {
        self.name == other.name && self.namespace == other.namespace
    }
}

fn subject(subject: &Value, binding_namespace: &str) -> Option<(SubjectKind, Box<str>)> {
    let name = tree::text(subject, "name");
    match tree::text(subject, "kind") {
        "User" => Some((SubjectKind::User, name.into())),
        "Group" => Some((SubjectKind::Group, name.into())),
        "ServiceAccount" => {
            let namespace = match tree::text(subject, "namespace") {
                "" => binding_namespace,
                namespace => namespace,
            };
            let user = format!("system:serviceaccount:{namespace}:{name}");
            Some((SubjectKind::ServiceAccount, user.into()))
        }
        _ => None,
    }
}

/// One subject of a binding.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) binding: Arc<Binding>,
    pub(super) kind: SubjectKind,
    pub(super) name: Box<str>,
}

impl Grant {
    /// Upstream's error for a role that does not exist.
    pub(super) fn role_not_found(&self) -> String {
        let kind = self.binding.role_kind().to_lowercase();
        let name = &self.binding.role_name;
        format!("{kind}.{GROUP} \"{name}\" not found")
    }
}

/// As in upstream's reasons: `RoleBinding "b/ns" of ClusterRole "r" to User "u"`.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding {
            namespace,
            name,
            role_name,
            ..
        } = &*self.binding;
        if namespace.is_empty() {
            write!(f, "ClusterRoleBinding \"{name}\"")?;
        } else {
            write!(f, "RoleBinding \"{name}/{namespace}\"")?;
        }
        let kind = self.binding.role_kind();
        write!(f, " of {kind} \"{role_name}\" to ")?;
        let subject = &self.name;
        match self.kind {
            SubjectKind::User => write!(f, "User \"{subject}\""),
            SubjectKind::Group => write!(f, "Group \"{subject}\""),
            SubjectKind::ServiceAccount => {
                let account = subject.trim_start_matches("system:serviceaccount:");
                let (namespace, account) = account.split_once(':').unwrap_or(("", account));
                write!(f, "ServiceAccount \"{account}/{namespace}\"")
            }
        }
    }
}
