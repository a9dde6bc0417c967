//! Streams between a client of the API and a container: what they look like on the wire, and the bridge to
//! [`crate::runtime::Session`].

pub mod spdy;
mod status;
