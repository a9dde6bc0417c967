//! The user of a request.

use std::collections::BTreeMap;

/// The group of all users with valid credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of anonymous users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// The user of the server's own writes.
pub const SERVER: &str = "system:kennel";

/// The key in `extra` of the credential's id, by which audit logs tell credentials apart.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// Distinguishes this user from later ones of the same name; empty if the credentials have none.
    pub uid: String,
    pub groups: Vec<String>,
    /// Other claims of the credentials, such as the pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with these groups and `system:authenticated`.
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

    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// A user in `system:masters`, who may do everything.
    pub fn master(name: &str) -> Self {
        Self::authenticated(name, vec![MASTERS.to_owned()])
    }

    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
        Self::authenticated(format!("system:serviceaccount:{namespace}:{name}"), groups)
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    pub fn is_anonymous(&self) -> bool {
        self.is_in(UNAUTHENTICATED)
    }
}
