//! The verbs of API requests and of authorisation.

use std::fmt;

use serde::{Serialize, Serializer};

/// A verb. Access reviews may ask about verbs that no request has: those are [`Verb::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb<'a> {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
    /// Requests outside the resource API.
    Post,
    Put,
    Head,
    Options,
    /// Checked beside the request's own verb: see the RBAC reference of Kubernetes.
    Approve,
    Bind,
    Escalate,
    Impersonate,
    Sign,
    Use,
    Other(&'a str),
}

impl<'a> Verb<'a> {
    pub fn parse(text: &'a str) -> Self {
        match text {
            "create" => Self::Create,
            "delete" => Self::Delete,
            "deletecollection" => Self::DeleteCollection,
            "get" => Self::Get,
            "list" => Self::List,
            "patch" => Self::Patch,
            "update" => Self::Update,
            "watch" => Self::Watch,
            "post" => Self::Post,
            "put" => Self::Put,
            "head" => Self::Head,
            "options" => Self::Options,
            "approve" => Self::Approve,
            "bind" => Self::Bind,
            "escalate" => Self::Escalate,
            "impersonate" => Self::Impersonate,
            "sign" => Self::Sign,
            "use" => Self::Use,
            other => Self::Other(other),
        }
    }

    pub const fn as_str(self) -> &'a str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
            Self::Post => "post",
            Self::Put => "put",
            Self::Head => "head",
            Self::Options => "options",
            Self::Approve => "approve",
            Self::Bind => "bind",
            Self::Escalate => "escalate",
            Self::Impersonate => "impersonate",
            Self::Sign => "sign",
            Self::Use => "use",
            Self::Other(text) => text,
        }
    }
}

/// The empty verb, which no rule allows.
impl Default for Verb<'_> {
    fn default() -> Self {
        Self::Other("")
    }
}

impl Serialize for Verb<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for Verb<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
