//! From a socket to the router and back: connections, HTTP/1.1 and HTTP/2, timeouts, graceful shutdown.

mod access_log;
mod activity;
pub mod body;
mod check_head;
mod connection;
pub mod listen;
mod protocol;
mod read_body;
mod recheck;
mod service;
mod stream;

pub use service::answer;
