//! Netlink: messages as bytes, and the socket. Knows nothing of nftables.

mod message;
mod socket;

pub use message::{
    ACK, APPEND, Attributes, CREATE, DUMP, EXCLUSIVE, Message, Messages, Request, attributes,
};
pub use socket::{Failure, Socket};
