//! Why a DaemonSet cannot be inspected.

use kennel_core::selector::SelectorError;

use crate::snapshot::{NoSuchNode, NotFound};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error(transparent)]
    NoSuchNode(#[from] NoSuchNode),
    /// What could not be done, for people.
    #[error("{what}")]
    Api {
        what: String,
        #[source]
        source: kube::Error,
    },
    #[error("cannot decode the DaemonSet")]
    Decode(#[source] serde_json::Error),
    #[error("cannot parse its selector")]
    Selector(#[source] SelectorError),
}

impl Error {
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Api { what, source }
    }
}
