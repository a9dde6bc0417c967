//! The elements of sets and maps.

use crate::netlink::{Attributes, attributes};

use super::expression;

/// The longest key: a number, an address, a protocol and a port.
const KEY_MAX: usize = 16;

/// Bytes of a key or of data, in words of four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words {
    bytes: [u8; KEY_MAX],
    length: u8,
}

impl Words {
    pub fn new(words: &[[u8; 4]]) -> Self {
        let mut bytes = [0; KEY_MAX];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(word);
        }
        Self {
            bytes,
            length: u8::try_from(words.len() * 4).unwrap_or(u8::MAX),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes().fmt(f)
    }
}

/// What an element of a map has beside its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// It is of a set.
    None,
    Value(Words),
    Goto(String),
    Drop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    pub key: Words,
    pub data: Data,
    /// Its lifetime and what is left of it, in milliseconds.
    pub timeout: Option<(u64, u64)>,
}

impl Element {
    pub fn new(key: Words, data: Data) -> Self {
        Self {
            key,
            data,
            timeout: None,
        }
    }

    pub(super) fn write(&self, list: &mut Attributes<'_>) {
        list.nested(1, |element| {
            element.nested(1, |key| key.bytes(1, self.key.bytes()));
            match &self.data {
                Data::None => {}
                Data::Value(value) => element.nested(2, |data| data.bytes(1, value.bytes())),
                Data::Goto(chain) => element.nested(2, |data| expression::goto(data, chain)),
                Data::Drop => element.nested(2, expression::drop_packet),
            }
            if let Some((timeout, left)) = self.timeout {
                element.long(4, timeout);
                element.long(5, left);
            }
        });
    }

    /// Reads an element with a value.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (mut key, mut data) = (None, Data::None);
        let (mut timeout, mut left) = (None, None);
        for (kind, value) in attributes(bytes) {
            match kind {
                1 => key = words(value),
                2 => data = words(value).map_or(Data::None, Data::Value),
                4 => timeout = value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
                5 => left = value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
                _ => {}
            }
        }
        Some(Self {
            key: key?,
            data,
            timeout: timeout.zip(left),
        })
    }
}

fn words(nested: &[u8]) -> Option<Words> {
    let (_, value) = attributes(nested).find(|(kind, _)| *kind == 1)?;
    let words: Vec<[u8; 4]> = value.as_chunks().0.to_vec();
    (words.len() * 4 <= KEY_MAX).then(|| Words::new(&words))
}
