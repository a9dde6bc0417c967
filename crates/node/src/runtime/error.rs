//! Why a runtime did not do what it was told, sorted by what users are told.

/// The result of asking a runtime.
pub type Result<T> = std::result::Result<T, Error>;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It does not answer; nothing is known about what was asked.
    #[error("{0}")]
    Unavailable(String),
    /// There is no such container, sandbox or image.
    #[error("{0}")]
    NotFound(String),
    /// What was asked cannot be honoured, now or later, as long as the spec says so. The message names the
    /// way out.
    #[error("{0}")]
    Refused(String),
    /// It took longer than it was given.
    #[error("{0}")]
    TimedOut(String),
    /// An image cannot be had.
    #[error("{message}")]
    Image {
        /// `ErrImagePull`, `ErrImageNeverPull`, `InvalidImageName`, …
        reason: &'static str,
        /// The details.
        message: String,
    },
    /// Anything else, in the runtime's words.
    #[error("{0}")]
    Failed(String),
}
