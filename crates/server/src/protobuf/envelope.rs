//! The envelope around every body: what kind of object it holds, and the object's bytes.
//!
//! What is in the object is no business of this room.

use super::wire::{Fields, Payload, misfit};

/// What every body in protobuf starts with.
const PREFIX: &[u8; 4] = b"k8s\0";

/// A body without its wrapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The group and version of the object; empty when the body does not say.
    pub api_version: &'a str,
    /// The kind of the object; empty when the body does not say.
    pub kind: &'a str,
    /// The object: one message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens a body. Fails with what is wrong with it.
    pub fn open(body: &'a [u8]) -> Result<Self, String> {
        if body.is_empty() {
            return Err("empty data".to_owned());
        }
        let message = body.strip_prefix(PREFIX).ok_or_else(|| {
            format!(
                "provided data does not appear to be a protobuf message, expected prefix [{}]",
                PREFIX.map(|byte| byte.to_string()).join(" ")
            )
        })?;
        if message.is_empty() {
            return Err("empty body".to_owned());
        }
        let mut envelope = Self::default();
        let mut fields = Fields::of(message);
        while let Some((number, payload)) = fields.next()? {
            envelope.take(number, payload)?;
        }
        Ok(envelope)
    }

    fn take(&mut self, number: u32, payload: Payload<'a>) -> Result<(), String> {
        match number {
            1 => self.type_meta(bytes(payload, "typeMeta")?),
            2 => {
                self.raw = bytes(payload, "raw")?;
                Ok(())
            }
            // Written by every client, and always empty: the object itself is never compressed.
            3 => match text(payload, "contentEncoding")? {
                "" => Ok(()),
                other => Err(format!("content encoding {other:?} is not supported")),
            },
            4 => match text(payload, "contentType")? {
                "" | super::MEDIA_TYPE => Ok(()),
                other => Err(format!("content type {other:?} is not supported")),
            },
            _ => Ok(()),
        }
    }

    fn type_meta(&mut self, message: &'a [u8]) -> Result<(), String> {
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

/// The bytes in a field of that name.
pub(super) fn bytes<'a>(payload: Payload<'a>, name: &str) -> Result<&'a [u8], String> {
    match payload {
        Payload::Bytes(bytes) => Ok(bytes),
        _ => Err(misfit(payload, name)),
    }
}

/// The string in a field of that name.
pub(super) fn text<'a>(payload: Payload<'a>, name: &str) -> Result<&'a str, String> {
    let bytes = bytes(payload, name)?;
    std::str::from_utf8(bytes).map_err(|_| format!("proto: field {name} contains invalid UTF-8"))
}
