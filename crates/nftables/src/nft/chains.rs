//! The chains that packets meet by themselves, of all tables.

use crate::netlink::{DUMP, Message, Request, attributes};

use super::message;

const GET_CHAIN: u16 = message(4);
/// Of the hook that forwarded packets pass.
const FORWARD: u32 = 2;
const POLICY_DROP: u32 = 0;

/// A chain with a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseChain {
    pub table: String,
    pub name: String,
    hook: u32,
    policy: Option<u32>,
}

impl BaseChain {
    /// Whether forwarded packets that none of its rules accepts are dropped.
    pub fn drops_forwarded(&self) -> bool {
        self.hook == FORWARD && self.policy == Some(POLICY_DROP)
    }
}

/// A request for the chains of all families.
pub fn chain_messages(mut request: Request) -> Request {
    request.push(GET_CHAIN, DUMP, 0, 0, |_| {});
    request
}

/// The chain in an answer to [`chain_messages`], if it has a hook.
pub fn chain_in(message: &Message<'_>) -> Option<BaseChain> {
    let (mut table, mut name) = (String::new(), String::new());
    let (mut hook, mut policy) = (None, None);
    for (kind, value) in message.attributes() {
        match kind {
            1 => table = text(value),
            3 => name = text(value),
            4 => hook = hook_in(value),
            5 => policy = number(value),
            _ => {}
        }
    }
    Some(BaseChain {
        table,
        name,
        hook: hook?,
        policy,
    })
}

fn hook_in(nested: &[u8]) -> Option<u32> {
    let (_, value) = attributes(nested).find(|(kind, _)| *kind == 1)?;
    number(value)
}

fn text(value: &[u8]) -> String {
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    String::from_utf8_lossy(value).into_owned()
}

fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
