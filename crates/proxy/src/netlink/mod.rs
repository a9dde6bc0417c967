//! Netlink: messages as bytes, and the socket. Knows nothing of nftables.

mod message;
mod socket;

pub(crate) use message::{
    ACK, APPEND, Attributes, CREATE, DUMP, EXCLUSIVE, Message, Messages, Request, attributes,
};
pub(crate) use socket::{Failure, Socket};
