//! Netlink messages: a header, the header of netfilter, and nested attributes.

/// Bytes of `struct nlmsghdr`, and of `struct nfgenmsg` behind it.
const HEADER: usize = 16;
const NETFILTER_HEADER: usize = 4;

/// Flags of requests.
pub(super) const REQUEST: u16 = 1;
pub const ACK: u16 = 4;
pub const DUMP: u16 = 0x300;
pub const CREATE: u16 = 0x400;
pub const EXCLUSIVE: u16 = 0x200;
pub const APPEND: u16 = 0x800;

/// Types of messages that every protocol has.
pub(super) const ERROR: u16 = 2;
pub(super) const DONE: u16 = 3;

/// Marks attributes that contain attributes.
const NESTED: u16 = 0x8000;

/// Messages to send, one after the other.
#[derive(Debug, Default)]
pub struct Request {
    bytes: Vec<u8>,
    sequence: u32,
    /// The number of the last message that the kernel answers.
    answered: u32,
}

impl Request {
    /// Numbers its messages from `sequence` on.
    pub fn numbered_from(sequence: u32) -> Self {
        Self {
            bytes: Vec::new(),
            sequence,
            answered: sequence,
        }
    }

    /// Appends a message; `write` adds its attributes. `resource` is `res_id` of netfilter's header.
    pub fn push(
        &mut self,
        kind: u16,
        flags: u16,
        family: u8,
        resource: u16,
        write: impl FnOnce(&mut Attributes<'_>),
    ) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes
            .extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&self.sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&[family, 0]);
        self.bytes.extend_from_slice(&resource.to_be_bytes());
        write(&mut Attributes(&mut self.bytes));
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        if flags & (ACK | DUMP) != 0 {
            self.answered = self.sequence;
        }
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// The number of the last message that the kernel answers.
    pub fn answered(&self) -> u32 {
        self.answered
    }

    /// The number of the message that is appended next.
    pub fn next_sequence(&self) -> u32 {
        self.sequence
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Appends attributes to a message.
pub struct Attributes<'a>(&'a mut Vec<u8>);

impl Attributes<'_> {
    pub fn bytes(&mut self, kind: u16, value: &[u8]) {
        let start = self.open(kind);
        self.0.extend_from_slice(value);
        self.close(start);
    }

    /// A string, with the zero byte at its end.
    pub fn text(&mut self, kind: u16, value: &str) {
        let start = self.open(kind);
        self.0.extend_from_slice(value.as_bytes());
        self.0.push(0);
        self.close(start);
    }

    pub fn byte(&mut self, kind: u16, value: u8) {
        self.bytes(kind, &[value]);
    }

    /// In network byte order, as netfilter wants all numbers.
    pub fn number(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// As [`Self::number`].
    pub fn long(&mut self, kind: u16, value: u64) {
        self.bytes(kind, &value.to_be_bytes());
    }

    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Attributes<'_>)) {
        let start = self.open(kind | NESTED);
        write(&mut Attributes(self.0));
        self.close(start);
    }

    /// Attributes that were received.
    pub fn raw(&mut self, attributes: &[u8]) {
        self.0.extend_from_slice(attributes);
        let padded = self.0.len().next_multiple_of(4);
        self.0.resize(padded, 0);
    }

    /// The bytes of the message so far, and of those before it.
    pub fn position(&self) -> usize {
        self.0.len()
    }

    fn open(&mut self, kind: u16) -> usize {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 2]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        start
    }

    fn close(&mut self, start: usize) {
        let length = self.0.len() - start;
        let length = u16::try_from(length).expect("callers bound the length of attributes");
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        let padded = self.0.len().next_multiple_of(4);
        self.0.resize(padded, 0);
    }
}

/// A message that was received.
#[derive(Debug)]
pub struct Message<'a> {
    pub kind: u16,
    pub sequence: u32,
    /// The port ID of the socket whose request caused it.
    pub port: u32,
    /// Behind the header.
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The number of an [`ERROR`]: 0 for success, or a negative errno.
    pub fn error(&self) -> i32 {
        let bytes = self.body.first_chunk();
        bytes.map_or(0, |bytes| i32::from_ne_bytes(*bytes))
    }

    /// The protocol family in netfilter's header.
    pub fn family(&self) -> u8 {
        self.body.first().copied().unwrap_or_default()
    }

    /// Behind netfilter's header.
    pub fn attributes(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        attributes(self.body.get(NETFILTER_HEADER..).unwrap_or_default())
    }
}

/// The messages in what was received at once.
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let number = |at: usize| {
            let bytes = self.0.get(at..)?.first_chunk()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        let (length, sequence, port) = (number(0)?, number(8)?, number(12)?);
        let kind = u16::from_ne_bytes(*self.0.get(4..)?.first_chunk()?);
        let length = usize::try_from(length).ok()?.max(HEADER);
        let body = self.0.get(HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message {
            kind,
            sequence,
            port,
            body,
        })
    }
}

/// The attributes in some bytes: kinds and values.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u16::from_ne_bytes(*bytes.first_chunk()?);
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let length = usize::from(length).max(4);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NESTED, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut request = Request::numbered_from(7);
        request.push(0x0a01, CREATE, 2, 10, |attributes| {
            attributes.text(1, "name");
            attributes.nested(2, |nested| {
                nested.number(1, 5);
                nested.byte(3, 9);
            });
        });
        request.push(0x0a02, 0, 2, 0, |_| {});
        assert_eq!(request.next_sequence(), 9);
        let mut all = Messages(request.bytes());
        let first = all.next().unwrap();
        assert_eq!((first.kind, first.sequence, first.port), (0x0a01, 7, 0));
        let found: Vec<_> = first.attributes().collect();
        assert_eq!(found[0], (1, &b"name\0"[..]));
        let nested: Vec<_> = attributes(found[1].1).collect();
        assert_eq!(nested, [(1, &[0, 0, 0, 5][..]), (3, &[9][..])]);
        assert_eq!(all.next().unwrap().kind, 0x0a02);
        assert!(all.next().is_none());
    }

    #[test]
    fn damaged_messages_end_the_sequence() {
        let mut request = Request::numbered_from(1);
        request.push(1, 0, 2, 0, |attributes| attributes.text(1, "name"));
        let whole = request.bytes();
        for length in 0..whole.len() {
            assert!(Messages(&whole[..length]).next().is_none(), "{length}");
        }
        assert_eq!(attributes(&[200, 0, 1, 0, 1]).count(), 0);
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 1);
    }
}
