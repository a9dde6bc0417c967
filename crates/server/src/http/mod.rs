//! From a socket to the API and back: TLS, HTTP/1.1 and HTTP/2, limits, orderly shutdown.

pub(crate) mod alive;
pub mod body;
pub mod connection;
pub(crate) mod flight;
mod head;
pub mod limits;
mod line;
pub mod listen;
mod patient;
mod protocol;
mod read;
pub(crate) mod switch;
pub mod tls;
mod traffic;
