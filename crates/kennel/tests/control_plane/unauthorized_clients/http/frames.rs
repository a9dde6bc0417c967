//! HTTP/2, frame by frame, as far as a test needs it to say what no library would. Headers are sent
//! literally; of answers only frames are told apart, and bodies read.

use std::io;

use kennel_testkit::{Access, Wire};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

pub(super) const PROTOCOL_ERROR: u32 = 1;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame as it was received.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// The error code of a `GOAWAY` or `RST_STREAM`.
    pub(super) fn error(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// The bytes of a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Headers, each spelled out.
pub(super) fn literal(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        bytes.push(0);
        for text in [name, value] {
            put_length(&mut bytes, text.len());
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

/// A number in seven bits, and more where they do not suffice.
fn put_length(bytes: &mut Vec<u8>, length: usize) {
    if length < 127 {
        bytes.push(u8::try_from(length).unwrap());
        return;
    }
    bytes.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        bytes.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    bytes.push(u8::try_from(rest).unwrap());
}

/// The headers of a request without a body.
pub(super) fn get(path: &str) -> Vec<u8> {
    literal(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", path),
        (":authority", "kennel"),
    ])
}

/// A connection.
pub(super) struct Http2 {
    pub(super) wire: Wire,
}

impl Http2 {
    /// A connection with these settings; the first frames of the server are unread.
    pub(super) fn open(access: &Access, settings: &[(u16, u32)]) -> Self {
        let mut wire = access.http2().open().unwrap();
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let opening = [&preface[..], &frame(SETTINGS, 0, 0, &payload)].concat();
        wire.send(&opening).unwrap();
        Self { wire }
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.wire
            .send(&frame(kind, flags, stream, payload))
            .unwrap();
    }

    /// The next frame; settings are acknowledged on the way.
    pub(super) fn next(&mut self) -> io::Result<Frame> {
        let head = self.wire.exactly(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let payload = self.wire.exactly(usize::try_from(length).unwrap())?;
        let frame = Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes(head[5..9].try_into().unwrap()),
            payload,
        };
        if (frame.kind, frame.flags) == (SETTINGS, 0) {
            // A server that has had enough does not care.
            let _sent = self.wire.send(&self::frame(SETTINGS, ACK, 0, &[]));
        }
        Ok(frame)
    }

    /// The first frame that is as wanted, if it comes before the end.
    pub(super) fn find(&mut self, is_wanted: impl Fn(&Frame) -> bool) -> Option<Frame> {
        loop {
            let frame = self.next().ok()?;
            if is_wanted(&frame) {
                return Some(frame);
            }
        }
    }

    /// The body of the answer on a stream.
    pub(super) fn body(&mut self, stream: u32) -> String {
        let mut body = Vec::new();
        loop {
            let frame = self.next().expect("the answer comes");
            if frame.stream == stream && frame.kind == DATA {
                body.extend(&frame.payload);
            }
            let ends = matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0;
            if frame.stream == stream && ends {
                return String::from_utf8(body).unwrap();
            }
        }
    }

    /// Asks, and reads the answer.
    pub(super) fn ask(&mut self, stream: u32, path: &str) -> String {
        let flags = END_HEADERS | END_STREAM;
        self.send(HEADERS, flags, stream, &get(path));
        self.body(stream)
    }

    /// The code that the server gives up with.
    pub(super) fn given_up(&mut self) -> Option<u32> {
        self.find(|frame| frame.kind == GOAWAY)
            .map(|frame| frame.error())
    }

    /// The code that the server ends a stream with, or the connection because of it.
    pub(super) fn refused(&mut self, stream: u32) -> Option<u32> {
        let frame = self.find(|frame| match frame.kind {
            RST_STREAM => frame.stream == stream,
            kind => kind == GOAWAY,
        });
        frame.map(|frame| frame.error())
    }
}
