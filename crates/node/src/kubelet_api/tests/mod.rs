//! The server as its clients see it, over a real TLS socket.

mod bench;
mod pages;
mod spdy;
mod websocket;
