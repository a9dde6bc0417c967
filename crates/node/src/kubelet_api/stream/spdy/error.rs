//! Why a connection that speaks SPDY cannot go on.

/// See the [module](self).
#[derive(Debug, thiserror::Error)]
pub enum SpdyError {
    /// Another version than 3.
    #[error("SPDY version {0} instead of 3")]
    Version(u16),
    /// A frame that is too short for what it says it is.
    #[error("a SPDY frame of kind {0} is cut short")]
    Short(u16),
    /// A frame that is longer than anything we have a use for.
    #[error("a SPDY frame of {0} bytes")]
    Long(usize),
    /// A block of headers that cannot be read.
    #[error("SPDY headers that cannot be read")]
    Headers,
    /// A block of headers that grows beyond its bound.
    #[error("SPDY headers that are too large")]
    HeadersTooLarge,
    /// The other side uses a number of a stream that is not its own, or not a new one.
    #[error("SPDY stream {0} cannot be opened")]
    StreamId(u32),
    /// The connection broke.
    #[error("the connection broke")]
    Io(#[from] std::io::Error),
}
