//! Understanding a request: its path ([`path`]), its query ([`query`]) and what the client can
//! read ([`accept`]). Pure: nothing here looks at the store.

pub mod accept;
pub mod path;
pub mod query;

/// The group of those who showed no credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The groups the user belongs to.
    pub groups: Vec<String>,
}

impl User {
    /// The identity of somebody who showed no credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
        }
    }

    /// An identity that may do everything.
    pub fn master(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            groups: vec![
                "system:masters".to_owned(),
                "system:authenticated".to_owned(),
            ],
        }
    }

    /// Whether the user belongs to a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
