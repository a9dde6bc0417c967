//! Protocol errors, which end a connection.

/// See the [module](self).
#[derive(Debug, thiserror::Error)]
pub enum SpdyError {
    #[error("SPDY version {0} instead of 3")]
    Version(u16),
    #[error("SPDY frame of type {0} is too short")]
    Short(u16),
    #[error("SPDY frame of {0} bytes is too long")]
    Long(usize),
    #[error("invalid SPDY headers")]
    Headers,
    #[error("SPDY headers are too large")]
    HeadersTooLarge,
    /// The peer used a stream id that belongs to us or is not new.
    #[error("SPDY stream {0} cannot be opened")]
    StreamId(u32),
    #[error("the connection failed")]
    Io(#[from] std::io::Error),
}
