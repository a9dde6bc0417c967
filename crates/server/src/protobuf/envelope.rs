//! The envelope around every protobuf body (`runtime.Unknown`): the kind of the object and its bytes.

use super::error::ProtobufError;
use super::wire::{Fields, Payload, wrong_wire_type};

/// What a body or a stored value begins with.
pub const PREFIX: &[u8; 4] = b"k8s\0";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Empty when the body does not say.
    pub api_version: &'a str,
    /// Empty when the body does not say.
    pub kind: &'a str,
    /// The object's message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    pub fn open(body: &'a [u8]) -> Result<Self, ProtobufError> {
        if body.is_empty() {
            return Err(ProtobufError::EmptyData);
        }
        let message = body.strip_prefix(PREFIX).ok_or(ProtobufError::NoPrefix)?;
        if message.is_empty() {
            return Err(ProtobufError::EmptyBody);
        }
        let mut envelope = Self::default();
        let mut fields = Fields::of(message);
        while let Some((number, payload)) = fields.next()? {
            envelope.take(number, payload)?;
        }
        Ok(envelope)
    }

    fn take(&mut self, number: u32, payload: Payload<'a>) -> Result<(), ProtobufError> {
        match number {
            1 => self.type_meta(bytes(payload, "typeMeta")?),
            2 => {
                self.raw = bytes(payload, "raw")?;
                Ok(())
            }
            // Every client writes it empty: the object is never compressed.
            3 => match text(payload, "contentEncoding")? {
                "" => Ok(()),
                other => Err(ProtobufError::ContentEncoding(other.to_owned())),
            },
            4 => match text(payload, "contentType")? {
                "" | super::MEDIA_TYPE => Ok(()),
                other => Err(ProtobufError::ContentType(other.to_owned())),
            },
            _ => Ok(()),
        }
    }

    fn type_meta(&mut self, message: &'a [u8]) -> Result<(), ProtobufError> {
        let mut fields = Fields::of(message);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => self.api_version = text(payload, "apiVersion")?,
                2 => self.kind = text(payload, "kind")?,
                _ => {}
            }
        }
        Ok(())
    }
}

pub(super) fn bytes<'a>(payload: Payload<'a>, name: &str) -> Result<&'a [u8], ProtobufError> {
    match payload {
        Payload::Bytes(bytes) => Ok(bytes),
        _ => Err(wrong_wire_type(payload, name)),
    }
}

pub(super) fn text<'a>(payload: Payload<'a>, name: &str) -> Result<&'a str, ProtobufError> {
    let bytes = bytes(payload, name)?;
    std::str::from_utf8(bytes).map_err(|_| ProtobufError::InvalidUtf8(name.to_owned()))
}
