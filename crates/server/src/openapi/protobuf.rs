//! Writes the protobuf wire format, as far as the OpenAPI document needs it.

/// A message being written. Omits empty fields, as proto3.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// The wire type of numbers.
const VARINT: u32 = 0;
/// The wire type of strings and messages.
const LENGTH_DELIMITED: u32 = 2;

impl Message {
    /// A string field.
    pub(super) fn text(mut self, field: u32, text: &str) -> Self {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
        self
    }

    /// A nested message; written even when it is empty, since presence has a meaning.
    pub(super) fn message(mut self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0);
        self
    }

    /// A boolean field.
    pub(super) fn flag(mut self, field: u32, flag: bool) -> Self {
        if flag {
            self.varint(u64::from(field << 3 | VARINT));
            self.varint(1);
        }
        self
    }

    /// Nested messages of a repeated field.
    pub(super) fn messages(self, field: u32, messages: impl IntoIterator<Item = Self>) -> Self {
        let messages = messages.into_iter();
        messages.fold(self, |parent, message| parent.message(field, &message))
    }

    /// The bytes written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | LENGTH_DELIMITED));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut number: u64) {
        loop {
            let [low, ..] = (number & 0x7f).to_le_bytes();
            number >>= 7;
            if number == 0 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_the_wire_format() {
        let inner = Message::default()
            .text(1, "hi")
            .text(2, "")
            .flag(3, true)
            .flag(4, false);
        assert_eq!(inner.0, [0x0a, 2, b'h', b'i', 0x18, 1]);
        let outer = Message::default().message(31, &inner);
        assert_eq!(outer.0, [0xfa, 0x01, 6, 0x0a, 2, b'h', b'i', 0x18, 1]);
        let long = Message::default().text(1, &"x".repeat(300));
        assert_eq!(long.0[..3], [0x0a, 0xac, 0x02]);
        assert_eq!(
            Message::default().message(1, &Message::default()).0,
            [0x0a, 0]
        );
    }
}
