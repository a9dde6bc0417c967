//! The server as its clients see it, over a real TLS socket.

mod endpoints;
mod fixture;
mod spdy;
pub(super) mod stub_runtime;
mod websocket;
