//! Errors of runtimes, by how users see them.

use kennel_types::pod::WaitingReason;

pub type Result<T> = std::result::Result<T, Error>;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The runtime does not respond; the outcome is unknown.
    #[error("{0}")]
    Unavailable(String),
    /// There is no such container, sandbox or image.
    #[error("{0}")]
    NotFound(String),
    /// The runtime cannot apply the spec. The message names the way out.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    TimedOut(String),
    #[error("{message}")]
    Image {
        reason: WaitingReason<'static>,
        message: String,
    },
    /// Any other error, in the runtime's words.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// For `map_err`.
    pub(crate) fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}
