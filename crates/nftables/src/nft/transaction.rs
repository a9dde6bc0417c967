//! Changes of one table that take effect together or not at all.

use crate::netlink::{
    ACK, APPEND, Attributes, CREATE, DUMP, EXCLUSIVE, Message, Request, attributes,
};

use super::elements::Element;
use super::expression::Expression;
use super::{
    DELETE_CHAIN, DELETE_ELEMENTS, DELETE_RULE, DELETE_SET, DELETE_TABLE, GET_ELEMENTS,
    GET_GENERATION, GET_TABLE, IPV4, NEW_CHAIN, NEW_ELEMENTS, NEW_GENERATION, NEW_RULE, NEW_SET,
    NEW_TABLE, SUBSYSTEM,
};

const BEGIN: u16 = 16;
const END: u16 = 17;

/// Elements in one message: attributes are at most 64 KiB long.
const ELEMENTS_BYTES: usize = 60_000;

/// Where packets meet a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    Prerouting,
    Output,
    Postrouting,
}

impl Hook {
    fn number(self) -> u32 {
        match self {
            Self::Prerouting => 0,
            Self::Output => 3,
            Self::Postrouting => 4,
        }
    }

    /// That of destination NAT, or of source NAT.
    fn priority(self) -> i32 {
        match self {
            Self::Prerouting | Self::Output => -100,
            Self::Postrouting => 100,
        }
    }
}

/// What the keys and values of a set or map are, for the kernel and for `nft list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetKind {
    /// Types as `nft` numbers them, six bits each.
    pub key: u32,
    pub key_bytes: u32,
    pub data: MapData,
    /// The most elements, if rules add them; they expire.
    pub dynamic: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapData {
    None,
    Value { kind: u32, bytes: u32 },
    Verdict,
}

const FLAG_MAP: u32 = 8;
const FLAG_TIMEOUT: u32 = 0x10;
const FLAG_EVAL: u32 = 0x20;
const VERDICT_TYPE: u32 = 0xffff_ff00;

/// See the [module](self).
pub struct Transaction<'a> {
    table: &'a str,
    request: Request,
    changes: usize,
}

/// Whether elements are added or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Add,
    Delete,
}

impl<'a> Transaction<'a> {
    pub fn new(table: &'a str, mut request: Request) -> Self {
        request.push(BEGIN, 0, 0, SUBSYSTEM, |_| {});
        Self {
            table,
            request,
            changes: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// The whole request.
    pub fn finish(mut self) -> Request {
        self.request.push(END, 0, 0, SUBSYSTEM, |_| {});
        self.request
    }

    fn push(&mut self, kind: u16, flags: u16, write: impl FnOnce(&mut Attributes<'_>)) {
        let table = self.table;
        self.changes += 1;
        self.request.push(kind, flags | ACK, IPV4, 0, |attributes| {
            attributes.text(1, table);
            write(attributes);
        });
    }

    /// Adds the table if it does not exist.
    pub fn add_table(&mut self) {
        self.push(NEW_TABLE, CREATE, |table| table.number(2, 0));
    }

    pub fn delete_table(&mut self) {
        self.push(DELETE_TABLE, 0, |_| {});
    }

    pub fn add_base_chain(&mut self, name: &str, hook: Hook) {
        self.push(NEW_CHAIN, CREATE | EXCLUSIVE, |chain| {
            chain.text(3, name);
            chain.nested(4, |nested| {
                nested.number(1, hook.number());
                nested.number(2, hook.priority().cast_unsigned());
            });
            chain.number(5, 1);
            chain.text(7, "nat");
        });
    }

    pub fn add_chain(&mut self, name: &str) {
        self.push(NEW_CHAIN, CREATE | EXCLUSIVE, |chain| chain.text(3, name));
    }

    /// Deletes the rules of a chain.
    pub fn flush_chain(&mut self, name: &str) {
        self.push(DELETE_RULE, 0, |rule| rule.text(2, name));
    }

    /// Deletes a chain without rules.
    pub fn delete_chain(&mut self, name: &str) {
        self.push(DELETE_CHAIN, 0, |chain| chain.text(3, name));
    }

    /// Appends a rule to a chain.
    pub fn add_rule(&mut self, chain: &str, expressions: &[Expression]) {
        self.push(NEW_RULE, CREATE | APPEND, |rule| {
            rule.text(2, chain);
            rule.nested(4, |list| {
                for expression in expressions {
                    expression.write(list);
                }
            });
        });
    }

    pub fn add_set(&mut self, name: &str, kind: SetKind) {
        let id = u32::try_from(self.changes).unwrap_or(u32::MAX);
        self.push(NEW_SET, CREATE | EXCLUSIVE, |set| {
            set.text(2, name);
            let map = if kind.data == MapData::None {
                0
            } else {
                FLAG_MAP
            };
            let dynamic = if kind.dynamic.is_some() {
                FLAG_TIMEOUT | FLAG_EVAL
            } else {
                0
            };
            set.number(3, map | dynamic);
            set.number(4, kind.key);
            set.number(5, kind.key_bytes);
            match kind.data {
                MapData::None => {}
                MapData::Value { kind, bytes } => {
                    set.number(6, kind);
                    set.number(7, bytes);
                }
                MapData::Verdict => {
                    set.number(6, VERDICT_TYPE);
                    set.number(7, 0);
                }
            }
            if let Some(size) = kind.dynamic {
                set.nested(9, |description| description.number(1, size));
            }
            set.number(10, id);
        });
    }

    pub fn delete_set(&mut self, name: &str) {
        self.push(DELETE_SET, 0, |set| set.text(2, name));
    }

    /// Adds or deletes elements of a set.
    pub fn elements(&mut self, change: Change, set: &str, elements: &[Element]) {
        let (kind, flags) = match change {
            Change::Add => (NEW_ELEMENTS, CREATE | EXCLUSIVE),
            Change::Delete => (DELETE_ELEMENTS, 0),
        };
        let mut left = elements;
        while !left.is_empty() {
            self.push(kind, flags, |message| {
                message.text(2, set);
                message.nested(3, |list| {
                    let end = list.position() + ELEMENTS_BYTES;
                    while let Some((element, rest)) = left.split_first()
                        && list.position() < end
                    {
                        element.write(list);
                        left = rest;
                    }
                });
            });
        }
    }
}

/// A request for all elements of a set.
pub fn element_messages(mut request: Request, table: &str, set: &str) -> Request {
    request.push(GET_ELEMENTS, DUMP, IPV4, 0, |message| {
        message.text(1, table);
        message.text(2, set);
    });
    request
}

/// The elements in an answer to [`element_messages`].
pub fn elements_in(message: &Message<'_>) -> impl Iterator<Item = Element> {
    let lists = message.attributes().filter(|(kind, _)| *kind == 3);
    let elements = lists.flat_map(|(_, list)| attributes(list));
    elements.filter_map(|(_, element)| Element::read(element))
}

/// The table that a notice about a change is about: `None` for the notice that ends a transaction.
pub fn table_of<'a>(message: &Message<'a>) -> Option<&'a [u8]> {
    if message.kind == NEW_GENERATION || message.kind >> 8 != SUBSYSTEM {
        return None;
    }
    let name = message.attributes().find(|(kind, _)| *kind == 1);
    name.map(|(_, name)| name.strip_suffix(&[0]).unwrap_or(name))
}

/// A request for a table.
pub fn table_message(mut request: Request, table: &str) -> Request {
    request.push(GET_TABLE, ACK, IPV4, 0, |message| message.text(1, table));
    request
}

/// A request for the number of the last transaction.
pub fn generation_message(mut request: Request) -> Request {
    request.push(GET_GENERATION, ACK, 0, 0, |_| {});
    request
}

/// The number in an answer to [`generation_message`].
pub fn generation_of(message: &Message<'_>) -> Option<u32> {
    let mut attributes = message
        .attributes()
        .filter(|_| message.kind == NEW_GENERATION);
    let (_, value) = attributes.find(|(kind, _)| *kind == 1)?;
    Some(u32::from_be_bytes(*value.first_chunk()?))
}
