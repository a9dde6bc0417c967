//! Who sends a request, once that has been proved.

use std::collections::BTreeMap;

/// The group of everybody who showed credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of those who showed none.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// What `extra` calls the credential that was shown, so that a log can tell one from another.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// What tells this user from others of that name over time; empty where nothing does.
    pub uid: String,
    /// The groups the user belongs to.
    pub groups: Vec<String>,
    /// What else the credentials say, such as the pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who showed credentials: the groups given, and that of everybody who did.
    pub fn authenticated(name: impl Into<String>, groups: Vec<String>) -> Self {
        let mut user = Self {
            name: name.into(),
            groups,
            ..Self::default()
        };
        if !user.is_in(AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.to_owned());
        }
        user
    }

    /// The identity of somebody who showed no credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// An identity that may do everything.
    pub fn master(name: &str) -> Self {
        Self::authenticated(name, vec![MASTERS.to_owned()])
    }

    /// The identity of a service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
        Self::authenticated(format!("system:serviceaccount:{namespace}:{name}"), groups)
    }

    /// Whether the user belongs to a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether the user showed no credentials.
    pub fn is_anonymous(&self) -> bool {
        self.is_in(UNAUTHENTICATED)
    }
}
