//! The verbs of API requests and of authorisation.

use serde::{Serialize, Serializer};

use crate::text_enum::text_enum;

text_enum! {
    /// A verb. Access reviews may ask about verbs that no request has: those are [`Verb::Other`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Verb<'a>, else Other(&'a str) {
        Create = "create",
        Delete = "delete",
        DeleteCollection = "deletecollection",
        Get = "get",
        List = "list",
        Patch = "patch",
        Update = "update",
        Watch = "watch",
        /// Requests outside the resource API.
        Post = "post",
        Put = "put",
        Head = "head",
        Options = "options",
        /// Checked beside the request's own verb: see the RBAC reference of Kubernetes.
        Approve = "approve",
        Bind = "bind",
        Escalate = "escalate",
        Impersonate = "impersonate",
        Sign = "sign",
        Use = "use",
    }
}

impl Serialize for Verb<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
