//! The chains that packets meet by themselves, of all tables.

use crate::netlink::{DUMP, Message, Request, attributes};

use super::{IPV4, message};

const GET_CHAIN: u16 = message(4);
/// Of hooks.
const INPUT: u32 = 1;
const FORWARD: u32 = 2;
/// Tables of both versions of IP.
const INET: u8 = 1;
const DROP: u32 = 0;

/// A chain with a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseChain {
    pub family: u8,
    pub table: String,
    pub name: String,
    hook: u32,
    policy: Option<u32>,
}

/// What happens to every packet that comes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    /// It is dropped or rejected.
    Refuse,
}

impl BaseChain {
    /// Whether it sees packets of IPv4 that this machine forwards.
    pub fn sees_forwarded(&self) -> bool {
        self.hook == FORWARD && self.is_ipv4()
    }

    /// Whether it sees packets of IPv4 for this machine.
    pub fn sees_incoming(&self) -> bool {
        self.hook == INPUT && self.is_ipv4()
    }

    /// The policy for packets that reach its end.
    pub fn policy(&self) -> Verdict {
        match self.policy {
            Some(DROP) => Verdict::Refuse,
            _ => Verdict::Accept,
        }
    }

    fn is_ipv4(&self) -> bool {
        [INET, IPV4].contains(&self.family)
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
        family: message.family(),
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

pub(super) fn text(value: &[u8]) -> String {
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    String::from_utf8_lossy(value).into_owned()
}

pub(super) fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
