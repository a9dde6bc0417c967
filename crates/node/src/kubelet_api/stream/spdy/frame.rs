//! Encoding of SPDY/3.1 frames. Knows nothing of streams.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::error::SpdyError;
use super::headers::{HeaderCompressor, HeaderDecompressor, Headers};

/// The length of a frame's head.
pub(super) const HEAD_BYTES: usize = 8;
/// The longest accepted control frame.
pub(super) const CONTROL_BYTES_MAX: usize = 64 * 1024;

const VERSION: u16 = 3;
const CONTROL_BIT: u32 = 0x8000_0000;
const ID_BITS: u32 = 0x7fff_ffff;
const FLAG_FIN: u8 = 1;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;

/// The status of `RST_STREAM` when there are too many streams.
pub(super) const REFUSED_STREAM: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Data { id: u32, fin: bool, length: usize },
    Control { kind: u16, fin: bool, length: usize },
}

impl Head {
    pub(super) fn parse(bytes: [u8; HEAD_BYTES]) -> Result<Self, SpdyError> {
        let [v1, v2, k1, k2, flags, l1, l2, l3] = bytes;
        let (word, fin) = (u32::from_be_bytes([v1, v2, k1, k2]), flags & FLAG_FIN != 0);
        let length = u32::from_be_bytes([0, l1, l2, l3]) as usize;
        if word & CONTROL_BIT == 0 {
            return Ok(Self::Data {
                id: word,
                fin,
                length,
            });
        }
        let version = u16::from_be_bytes([v1 & 0x7f, v2]);
        let kind = u16::from_be_bytes([k1, k2]);
        if version != VERSION {
            return Err(SpdyError::Version(version));
        }
        if length > CONTROL_BYTES_MAX {
            return Err(SpdyError::Long(length));
        }
        Ok(Self::Control { kind, fin, length })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// `SYN_STREAM`.
    Open {
        id: u32,
        headers: Headers,
        fin: bool,
    },
    /// `SYN_REPLY`.
    Reply {
        id: u32,
        headers: Headers,
        fin: bool,
    },
    /// `RST_STREAM`.
    Reset {
        id: u32,
        status: u32,
    },
    /// The reply has the same id.
    Ping(u32),
    /// The sender accepts no new streams.
    GoAway {
        last: u32,
    },
    Headers {
        id: u32,
        headers: Headers,
        fin: bool,
    },
    /// `WINDOW_UPDATE`.
    Window {
        id: u32,
        delta: u32,
    },
    Data {
        id: u32,
        bytes: Bytes,
        fin: bool,
    },
    /// Settings and unknown types, which are ignored as the protocol requires.
    Other,
}

impl Frame {
    /// Parses the body of a control frame.
    pub(super) fn parse(
        kind: u16,
        fin: bool,
        body: &[u8],
        decompressor: &mut HeaderDecompressor,
    ) -> Result<Self, SpdyError> {
        let number = |at: usize| {
            let bytes = body.get(at..).and_then(|rest| rest.first_chunk());
            let bytes = bytes.ok_or(SpdyError::Short(kind))?;
            Ok::<_, SpdyError>(u32::from_be_bytes(*bytes))
        };
        let id = || number(0).map(|id| id & ID_BITS);
        let mut block = |at: usize| {
            let block = body.get(at..).ok_or(SpdyError::Short(kind))?;
            decompressor.decompress(block)
        };
        Ok(match kind {
            SYN_STREAM => Self::Open {
                id: id()?,
                headers: block(10)?,
                fin,
            },
            SYN_REPLY => Self::Reply {
                id: id()?,
                headers: block(4)?,
                fin,
            },
            HEADERS => Self::Headers {
                id: id()?,
                headers: block(4)?,
                fin,
            },
            RST_STREAM => Self::Reset {
                id: id()?,
                status: number(4)?,
            },
            PING => Self::Ping(number(0)?),
            GOAWAY => Self::GoAway { last: id()? },
            WINDOW_UPDATE => Self::Window {
                id: id()?,
                delta: number(4)? & ID_BITS,
            },
            SETTINGS => {
                number(0)?;
                Self::Other
            }
            _ => Self::Other,
        })
    }

    pub(super) fn write(&self, compressor: &mut HeaderCompressor, out: &mut BytesMut) {
        match self {
            Self::Open { id, headers, fin } => {
                let block = compressor.compress(headers);
                put_head(out, SYN_STREAM, *fin, 10 + block.len());
                out.put_u32(*id);
                // No associated stream, the highest priority, no slot.
                out.put_slice(&[0; 6]);
                out.put_slice(&block);
            }
            Self::Reply { id, headers, fin } => {
                put_headers(out, SYN_REPLY, *id, *fin, &compressor.compress(headers));
            }
            Self::Headers { id, headers, fin } => {
                put_headers(out, HEADERS, *id, *fin, &compressor.compress(headers));
            }
            Self::Reset { id, status } => put_numbers(out, RST_STREAM, &[*id, *status]),
            Self::Ping(id) => put_numbers(out, PING, &[*id]),
            Self::GoAway { last } => put_numbers(out, GOAWAY, &[*last, 0]),
            Self::Window { id, delta } => put_numbers(out, WINDOW_UPDATE, &[*id, *delta]),
            Self::Data { id, bytes, fin } => {
                out.put_u32(*id);
                flags_and_length(out, *fin, bytes.len());
                out.put_slice(bytes);
            }
            Self::Other => {}
        }
    }
}

fn put_head(out: &mut BytesMut, kind: u16, fin: bool, length: usize) {
    out.put_u16(VERSION | 0x8000);
    out.put_u16(kind);
    flags_and_length(out, fin, length);
}

fn flags_and_length(out: &mut BytesMut, fin: bool, length: usize) {
    debug_assert!(length < 1 << 24, "we never write frames that long");
    out.put_u8(if fin { FLAG_FIN } else { 0 });
    out.put_uint(length as u64, 3);
}

fn put_headers(out: &mut BytesMut, kind: u16, id: u32, fin: bool, block: &[u8]) {
    put_head(out, kind, fin, 4 + block.len());
    out.put_u32(id);
    out.put_slice(block);
}

fn put_numbers(out: &mut BytesMut, kind: u16, numbers: &[u32]) {
    put_head(out, kind, false, 4 * numbers.len());
    for number in numbers {
        out.put_u32(*number);
    }
}

#[cfg(test)]
mod tests;
