//! nftables over netlink: tables, chains, rules, sets and transactions. Knows nothing of services.

mod chains;
mod elements;
mod expression;
mod rules;
mod transaction;

pub use chains::{BaseChain, Verdict, chain_in, chain_messages};
pub use elements::{Data, Element, Words};
pub use expression::{DESTINATION_CHANGED, Expression, LOCAL, MASQUERADE_MARK, Register};
pub use rules::{Outcome, Packets, outcome_in, rule_messages};
pub use transaction::{
    Change, Hook, MapData, SetKind, Transaction, element_messages, elements_in, generation_message,
    generation_of, table_message, table_of,
};

/// The netfilter subsystem: the upper byte of message types.
const SUBSYSTEM: u16 = 10;
/// The multicast group of changes, as a bit.
pub const CHANGES: u32 = 1 << 6;

/// Tables of IPv4.
const IPV4: u8 = 2;

const fn message(kind: u16) -> u16 {
    SUBSYSTEM << 8 | kind
}

const NEW_TABLE: u16 = message(0);
const GET_TABLE: u16 = message(1);
const DELETE_TABLE: u16 = message(2);
const NEW_CHAIN: u16 = message(3);
const DELETE_CHAIN: u16 = message(5);
const NEW_RULE: u16 = message(6);
const GET_RULE: u16 = message(7);
const DELETE_RULE: u16 = message(8);
const NEW_SET: u16 = message(9);
const DELETE_SET: u16 = message(11);
const NEW_ELEMENTS: u16 = message(12);
const GET_ELEMENTS: u16 = message(13);
const DELETE_ELEMENTS: u16 = message(14);
const NEW_GENERATION: u16 = message(15);
const GET_GENERATION: u16 = message(16);
