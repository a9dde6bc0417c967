//! The protobuf wire format: a sequence of numbered fields.
//!
//! For any bytes, reading returns a field, the end or an error; it never panics and copies nothing.

use super::error::{ProtobufError, WireError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    Varint(u64),
    /// Skipped: no type of the API has such a field.
    Fixed64,
    /// Strings, messages, packed lists.
    Bytes(&'a [u8]),
    /// Skipped: no type of the API has such a field.
    Fixed32,
}

impl Payload<'_> {
    fn wire_type(self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64 => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        }
    }
}

/// `name` is the field's name in JSON.
pub(super) fn wrong_wire_type(payload: Payload<'_>, name: &str) -> ProtobufError {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    ProtobufError::WrongWireType {
        wire_type: payload.wire_type(),
        field: first.into_iter().chain(letters).collect(),
    }
}

/// The fields of one message, in the order of its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub(super) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire_type = tag & 7;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if (1..1 << 29).contains(&number) => number,
            _ => {
                let number = tag >> 3;
                return Err(WireError::IllegalTag { number, wire_type });
            }
        };
        let payload = match wire_type {
            0 => Payload::Varint(self.varint()?),
            1 => self.take(8).map(|_| Payload::Fixed64)?,
            2 => {
                let length = self.varint()?;
                Payload::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Payload::Fixed32)?,
            // Groups (3 and 4) are deprecated, and no type of the API has one.
            other => return Err(WireError::IllegalWireType(other)),
        };
        Ok(Some((number, payload)))
    }

    /// The numbers of a packed list.
    pub(super) fn next_packed(&mut self) -> Result<Option<u64>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.varint().map(Some)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(length).ok();
        let split = length.and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split.ok_or(WireError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(WireError::UnexpectedEnd)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(WireError::IntegerOverflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &[u8], expected: Result<&[(u32, Payload<'_>)], &str>) {
        let mut fields = Fields::of(message);
        let mut found = Vec::new();
        let outcome = loop {
            match fields.next() {
                Ok(Some(field)) => found.push(field),
                Ok(None) => break Ok(found.as_slice()),
                Err(error) => break Err(error.to_string()),
            }
        };
        assert_eq!(outcome, expected.map_err(str::to_owned));
    }

    #[test]
    fn fields_come_in_their_order() {
        check(b"", Ok(&[]));
        check(b"\x08\x96\x01", Ok(&[(1, Payload::Varint(150))]));
        check(
            b"\x12\x02hi\x0a\x00",
            Ok(&[(2, Payload::Bytes(b"hi")), (1, Payload::Bytes(b""))]),
        );
        check(
            b"\x0912345678\x151234\x78\x00",
            Ok(&[
                (1, Payload::Fixed64),
                (2, Payload::Fixed32),
                (15, Payload::Varint(0)),
            ]),
        );
        check(
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            Ok(&[(1, Payload::Varint(u64::MAX))]),
        );
    }

    #[test]
    fn malformed_messages_are_refused() {
        let ends = Err("unexpected EOF");
        check(b"\x08", ends);
        check(b"\x08\x80", ends);
        check(b"\x0a\x02a", ends);
        check(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ends);
        check(b"\x091234567", ends);
        check(b"\x0d123", ends);
        check(
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            Err("proto: integer overflow"),
        );
        check(b"\x00\x01", Err("proto: illegal tag 0 (wire type 0)"));
        check(
            b"\x80\x80\x80\x80\x10\x01",
            Err("proto: illegal tag 536870912 (wire type 0)"),
        );
        check(b"\x0b\x0c", Err("proto: illegal wireType 3"));
    }
}
