//! The expressions of rules.

use crate::netlink::Attributes;

/// A register of 32 bits. Longer values take several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub u32);

impl Register {
    /// The first register of 32 bits, as the kernel counts.
    const FIRST: u32 = 8;
    /// Where a lookup puts a verdict, and an immediate value takes effect.
    const VERDICT: u32 = 0;

    fn number(self) -> u32 {
        Self::FIRST + self.0
    }

    /// The register so many behind this one.
    #[must_use]
    pub fn plus(self, more: u32) -> Self {
        Self(self.0 + more)
    }
}

/// Bits of a packet that this proxy's own mark takes, as kube-proxy's.
pub const MASQUERADE_MARK: u32 = 0x4000;

/// One step of a rule. Steps that load write a register; the others end the rule unless they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    LoadSource(Register),
    LoadDestination(Register),
    LoadProtocol(Register),
    LoadDestinationPort(Register),
    LoadMark(Register),
    LoadOutput(Register),
    /// The status bits of the packet's connection.
    LoadConnectionStatus(Register),
    /// The address that the connection's client asked for.
    LoadOriginalDestination(Register),
    /// Whether an address is this machine's ([`LOCAL`]).
    LoadDestinationType(Register),
    LoadSourceType(Register),
    /// As [`Self::LoadSourceType`], with the addresses of the interface that the packet leaves by only.
    LoadSourceTypeAtOutput(Register),
    /// A random number below this one.
    LoadRandom(Register, u32),
    /// register = register & mask ^ xor
    Bits(Register, u32, u32),
    Equals(Register, u32),
    NotEquals(Register, u32),
    /// The key is in the set.
    In(String, Register),
    /// The key is in the map, whose value goes to the second register.
    LoadFrom(String, Register, Register),
    /// The key is in the map, whose verdict is followed.
    Follow(String, Register),
    /// Adds a key and value that live for so many milliseconds, or has those that are there live for so long again.
    Remember {
        map: String,
        key: Register,
        value: Register,
        timeout: u64,
    },
    StoreMark(Register),
    /// To the address in the first register and the port in the second.
    Redirect(Register, Register),
    Masquerade,
    Jump(String),
    Goto(String),
    Return,
    ResetTcp,
    /// By ICMP: port unreachable.
    Refuse,
}

/// What `Load…Type` loads for addresses of this machine.
pub const LOCAL: u32 = 2;
/// The bit of `LoadConnectionStatus` of connections whose destination was changed.
pub const DESTINATION_CHANGED: u32 = 0x20;

const GOTO: i32 = -4;
const JUMP: i32 = -3;
const RETURN: i32 = -5;

impl Expression {
    /// Appends it to a list of expressions.
    pub(super) fn write(&self, list: &mut Attributes<'_>) {
        if !self.write_load(list) {
            self.write_step(list);
        }
    }

    /// Returns whether it is one that loads something of the packet.
    fn write_load(&self, list: &mut Attributes<'_>) -> bool {
        match self {
            Self::LoadSource(to) => {
                named(list, "payload", &mut |data| payload(data, *to, 1, 12, 4));
            }
            Self::LoadDestination(to) => {
                named(list, "payload", &mut |data| payload(data, *to, 1, 16, 4));
            }
            Self::LoadDestinationPort(to) => {
                named(list, "payload", &mut |data| payload(data, *to, 2, 2, 2));
            }
            Self::LoadProtocol(to) => named(list, "meta", &mut |data| load(data, *to, 16)),
            Self::LoadMark(to) => named(list, "meta", &mut |data| load(data, *to, 3)),
            Self::LoadOutput(to) => named(list, "meta", &mut |data| load(data, *to, 5)),
            Self::LoadConnectionStatus(to) => named(list, "ct", &mut |data| load(data, *to, 2)),
            Self::LoadOriginalDestination(to) => named(list, "ct", &mut |data| {
                load(data, *to, 20);
                data.byte(3, 0);
            }),
            Self::LoadDestinationType(to) => named(list, "fib", &mut |data| fib(data, *to, 2)),
            Self::LoadSourceType(to) => named(list, "fib", &mut |data| fib(data, *to, 1)),
            Self::LoadSourceTypeAtOutput(to) => {
                named(list, "fib", &mut |data| fib(data, *to, 1 | 16));
            }
            Self::LoadRandom(to, below) => named(list, "numgen", &mut |data| {
                data.number(1, to.number());
                data.number(2, *below);
                data.number(3, 1);
                data.number(4, 0);
            }),
            _ => return false,
        }
        true
    }

    /// All others.
    fn write_step(&self, list: &mut Attributes<'_>) {
        match self {
            Self::Bits(register, mask, xor) => named(list, "bitwise", &mut |data| {
                data.number(1, register.number());
                data.number(2, register.number());
                data.number(3, 4);
                data.nested(4, |value| value.bytes(1, &mask.to_ne_bytes()));
                data.nested(5, |value| value.bytes(1, &xor.to_ne_bytes()));
            }),
            Self::Equals(register, value) => {
                named(list, "cmp", &mut |data| compare(data, *register, 0, *value));
            }
            Self::NotEquals(register, value) => {
                named(list, "cmp", &mut |data| compare(data, *register, 1, *value));
            }
            Self::In(set, key) => named(list, "lookup", &mut |data| {
                data.text(1, set);
                data.number(2, key.number());
            }),
            Self::LoadFrom(map, key, to) => named(list, "lookup", &mut |data| {
                data.text(1, map);
                data.number(2, key.number());
                data.number(3, to.number());
            }),
            Self::Follow(map, key) => named(list, "lookup", &mut |data| {
                data.text(1, map);
                data.number(2, key.number());
                data.number(3, Register::VERDICT);
            }),
            Self::Remember {
                map,
                key,
                value,
                timeout,
            } => named(list, "dynset", &mut |data| {
                data.text(1, map);
                data.number(3, 1);
                data.number(4, key.number());
                data.number(5, value.number());
                data.long(6, *timeout);
            }),
            Self::Redirect(address, port) => named(list, "nat", &mut |data| {
                data.number(1, 1);
                data.number(2, super::IPV4.into());
                data.number(3, address.number());
                data.number(5, port.number());
            }),
            // With random ports: two packets at once never choose the same.
            Self::Masquerade => named(list, "masq", &mut |data| data.number(1, 16)),
            Self::Jump(chain) => named(list, "immediate", &mut |data| {
                verdict(data, JUMP, Some(chain));
            }),
            Self::Goto(chain) => named(list, "immediate", &mut |data| {
                verdict(data, GOTO, Some(chain));
            }),
            Self::Return => named(list, "immediate", &mut |data| verdict(data, RETURN, None)),
            Self::ResetTcp => named(list, "reject", &mut |data| {
                data.number(1, 1);
                data.byte(2, 0);
            }),
            Self::Refuse => named(list, "reject", &mut |data| {
                data.number(1, 0);
                data.byte(2, 3);
            }),
            Self::StoreMark(from) => named(list, "meta", &mut |data| {
                data.number(2, 3);
                data.number(3, from.number());
            }),
            _ => {}
        }
    }
}

fn named(list: &mut Attributes<'_>, name: &str, write: &mut dyn FnMut(&mut Attributes<'_>)) {
    list.nested(1, |element| {
        element.text(1, name);
        element.nested(2, |data| write(data));
    });
}

/// Bytes of a header: 1 is the network's, 2 the transport's.
fn payload(data: &mut Attributes<'_>, to: Register, base: u32, offset: u32, length: u32) {
    data.number(1, to.number());
    data.number(2, base);
    data.number(3, offset);
    data.number(4, length);
}

fn load(data: &mut Attributes<'_>, to: Register, key: u32) {
    data.number(1, to.number());
    data.number(2, key);
}

fn fib(data: &mut Attributes<'_>, to: Register, flags: u32) {
    data.number(1, to.number());
    data.number(2, 3);
    data.number(3, flags);
}

fn compare(data: &mut Attributes<'_>, register: Register, operation: u32, value: u32) {
    data.number(1, register.number());
    data.number(2, operation);
    data.nested(3, |nested| nested.bytes(1, &value.to_ne_bytes()));
}

fn verdict(data: &mut Attributes<'_>, code: i32, chain: Option<&str>) {
    data.number(1, Register::VERDICT);
    data.nested(2, |value| write_verdict(value, code, chain));
}

fn write_verdict(value: &mut Attributes<'_>, code: i32, chain: Option<&str>) {
    value.nested(2, |verdict| {
        verdict.number(1, code.cast_unsigned());
        if let Some(chain) = chain {
            verdict.text(2, chain);
        }
    });
}

/// The data of an element of a verdict map.
pub(super) fn goto(value: &mut Attributes<'_>, chain: &str) {
    write_verdict(value, GOTO, Some(chain));
}

pub(super) fn drop_packet(value: &mut Attributes<'_>) {
    write_verdict(value, 0, None);
}
