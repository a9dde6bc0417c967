//! The frame that controllers share: watching, writing, time, stopping. It decides nothing.

pub mod api;
pub mod clock;
pub mod feed;
pub mod work;

/// Why a controller ended before it was told to stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A watch that never ends has ended.
    #[error("the watch of {0} ended")]
    WatchEnded(&'static str),
}
