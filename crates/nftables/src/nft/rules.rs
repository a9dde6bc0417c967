//! What rules of any program do with packets of which one address is known. Understands what accepts and refuses ranges; whatever
//! else a rule asks for may or may not be met, so that it decides nothing.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::netlink::{DUMP, Message, Request, attributes};

use super::chains::{BaseChain, Verdict, number, text};
use super::{GET_RULE, IPV4};

// Verdicts of the kernel.
const DROP: i32 = 0;
const ACCEPT: i32 = 1;
const JUMP: i32 = -3;
const GOTO: i32 = -4;
const RETURN: i32 = -5;

const NETWORK_HEADER: u32 = 1;
const SOURCE: u32 = 12;
const DESTINATION: u32 = 16;
/// The key of `meta nfproto`.
const FAMILY: u32 = 15;
const EQUAL: u32 = 0;

/// Packets of IPv4: any, or those with an address in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    Any,
    From { block: Ipv4Addr, mask: Ipv4Addr },
    To { block: Ipv4Addr, mask: Ipv4Addr },
}

/// What a rule does with every one of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ends(Verdict),
    /// The packets go to a chain, and come back if it does not decide.
    Jump(String),
    /// They go to a chain, and on where this one was called.
    Goto(String),
    Return,
}

/// A request for the rules of a chain of the same table.
pub fn rule_messages(mut request: Request, of: &BaseChain, chain: &str) -> Request {
    request.push(GET_RULE, DUMP, of.family, 0, |rules| {
        rules.text(1, &of.table);
        rules.text(2, chain);
    });
    request
}

/// What the rule in an answer to [`rule_messages`] does; `None` if it does not end or change the way of every packet.
pub fn outcome_in(message: &Message<'_>, packets: Packets) -> Option<Outcome> {
    let (_, list) = message.attributes().find(|(kind, _)| *kind == 4)?;
    let mut registers = Registers::default();
    let mut outcome = None;
    for (_, expression) in attributes(list) {
        let name = find(expression, 1)?;
        let data = find(expression, 2).unwrap_or_default();
        match &*text(name) {
            "counter" | "log" => {}
            "payload" => registers.load_payload(data)?,
            "meta" => registers.load_meta(data)?,
            "bitwise" => registers.mask(data)?,
            "cmp" => {
                if !registers.equal(data, packets)? {
                    return None;
                }
            }
            "reject" => outcome = Some(Outcome::Ends(Verdict::Refuse)),
            "immediate" => outcome = Some(verdict(data)?),
            // A target of iptables.
            "target" => outcome = Some(target(data)?),
            _ => return None,
        }
    }
    outcome
}

/// What a register holds.
#[derive(Clone, Copy)]
enum Loaded {
    Source,
    Destination,
    Family,
}

/// What registers hold, and which bits of it.
#[derive(Default)]
struct Registers(BTreeMap<u32, (Loaded, u32)>);

impl Registers {
    fn load_payload(&mut self, data: &[u8]) -> Option<()> {
        let get = |kind| number(find(data, kind)?);
        let (register, base, offset, length) = (get(1)?, get(2)?, get(3)?, get(4)?);
        let loaded = match (base, offset) {
            (NETWORK_HEADER, SOURCE) => Loaded::Source,
            (NETWORK_HEADER, DESTINATION) => Loaded::Destination,
            _ => return None,
        };
        // Of an address, blocks of whole bytes load these alone.
        let mask = match length {
            1..=4 => u32::MAX << (32 - 8 * length),
            _ => return None,
        };
        self.0.insert(register, (loaded, mask));
        Some(())
    }

    fn load_meta(&mut self, data: &[u8]) -> Option<()> {
        let (register, key) = (number(find(data, 1)?)?, number(find(data, 2)?)?);
        if key != FAMILY {
            return None;
        }
        self.0.insert(register, (Loaded::Family, u32::MAX));
        Some(())
    }

    fn mask(&mut self, data: &[u8]) -> Option<()> {
        let (from, to) = (number(find(data, 1)?)?, number(find(data, 2)?)?);
        let word = |kind| Some(high(find(find(data, kind)?, 1)?));
        let (mask, flipped) = (word(4)?, word(5)?);
        let (loaded, before) = *self.0.get(&from)?;
        self.0.insert(to, (loaded, before & mask));
        (flipped == 0).then_some(())
    }

    /// Whether every one of the packets has this value; `None` if that is not known.
    fn equal(&self, data: &[u8], packets: Packets) -> Option<bool> {
        let (loaded, mask) = *self.0.get(&number(find(data, 1)?)?)?;
        if number(find(data, 2)?)? != EQUAL {
            return None;
        }
        let value = find(find(data, 3)?, 1)?;
        let (block, known) = match (loaded, packets) {
            (Loaded::Family, _) => return Some(value.first() == Some(&IPV4)),
            (Loaded::Source, Packets::From { block, mask })
            | (Loaded::Destination, Packets::To { block, mask }) => (block, mask),
            _ => return None,
        };
        let (block, known) = (u32::from(block), u32::from(known));
        Some(mask & !known == 0 && block & mask == high(value))
    }
}

/// Up to four bytes, from the first.
fn high(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    for (to, byte) in word.iter_mut().zip(bytes) {
        *to = *byte;
    }
    u32::from_be_bytes(word)
}

fn verdict(data: &[u8]) -> Option<Outcome> {
    let verdict = find(find(data, 2)?, 2)?;
    let chain = || find(verdict, 2).map(text);
    match number(find(verdict, 1)?)?.cast_signed() {
        DROP => Some(Outcome::Ends(Verdict::Refuse)),
        ACCEPT => Some(Outcome::Ends(Verdict::Accept)),
        JUMP => chain().map(Outcome::Jump),
        GOTO => chain().map(Outcome::Goto),
        RETURN => Some(Outcome::Return),
        _ => None,
    }
}

fn target(data: &[u8]) -> Option<Outcome> {
    let name = text(find(data, 1)?);
    let refuses = ["REJECT", "DROP"].contains(&&*name);
    refuses.then_some(Outcome::Ends(Verdict::Refuse))
}

fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut all = attributes(bytes);
    all.find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}
