//! The wire format: numbered fields in a row of bytes. Nothing here knows what a field means.
//!
//! Whatever the bytes are, reading ends with a field, the end, or a complaint in the words of Go's
//! generated decoders; it never panics, and copies nothing.

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes; no type of the API has such a field.
    Fixed64,
    /// Bytes with a length: strings, messages, packed lists.
    Bytes(&'a [u8]),
    /// Four bytes; no type of the API has such a field.
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

/// The refusal of a payload that does not fit the field of that JSON name.
pub(super) fn misfit(payload: Payload<'_>, name: &str) -> String {
    let wire_type = payload.wire_type();
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let go_name: String = first.into_iter().chain(letters).collect();
    format!("proto: wrong wireType = {wire_type} for field {go_name}")
}

/// The fields of one message, in the order in which they were written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field and its number, or none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire_type = tag & 7;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if (1..1 << 29).contains(&number) => number,
            _ => {
                return Err(format!(
                    "proto: illegal tag {} (wire type {wire_type})",
                    tag >> 3
                ));
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
            // Groups are a thing of the past that no type of the API has.
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, payload)))
    }

    /// The numbers of a packed list.
    pub(super) fn next_packed(&mut self) -> Result<Option<u64>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.varint().map(Some)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).ok();
        let split = length.and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split.ok_or_else(unexpected_end)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or_else(unexpected_end)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("proto: integer overflow".to_owned())
    }
}

fn unexpected_end() -> String {
    "unexpected EOF".to_owned()
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
                Err(why) => break Err(why),
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
    fn what_cannot_be_read_is_refused() {
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
