//! What must hold for any bytes of a SPDY connection: the fuzz target of `kennel-testkit` calls this, and nothing else does.

use bytes::{Bytes, BytesMut};

use super::error::SpdyError;
use super::frame::{CONTROL_BYTES_MAX, Frame, HEAD_BYTES, Head};
use super::headers::{BLOCK_BYTES_MAX, HeaderCompressor, HeaderDecompressor, Headers};

/// Frames, and a header block. What was read can be written, and read again as the same.
pub fn frames(input: &[u8]) {
    if let Ok(headers) = Headers::decode(input) {
        let block = headers.encode();
        assert!(block.len() <= BLOCK_BYTES_MAX + 4, "{} bytes", block.len());
        let again = Headers::decode(&block).expect("our own block can be read");
        assert_eq!(again, headers);
    }
    let (frames, _end) = read(input);
    let (mut compressor, mut written) = (HeaderCompressor::new(), BytesMut::new());
    for frame in &frames {
        let before = written.len();
        frame.write(&mut compressor, &mut written);
        if written.len() - before > CONTROL_BYTES_MAX {
            // Headers that do not get shorter again.
            return;
        }
    }
    let (again, end) = read(&written);
    assert!(end.is_ok(), "our own frames cannot be read: {end:?}");
    let ignored = |frame: &Frame| *frame == Frame::Other;
    let frames: Vec<Frame> = frames.into_iter().filter(|frame| !ignored(frame)).collect();
    assert_eq!(again, frames);
}

/// The frames up to the end or the first error.
fn read(mut bytes: &[u8]) -> (Vec<Frame>, Result<(), SpdyError>) {
    let (mut decompressor, mut frames) = (HeaderDecompressor::new(), Vec::new());
    loop {
        match next(&mut bytes, &mut decompressor) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, Ok(())),
            Err(error) => return (frames, Err(error)),
        }
    }
}

fn next(
    bytes: &mut &[u8],
    decompressor: &mut HeaderDecompressor,
) -> Result<Option<Frame>, SpdyError> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let head = Head::parse(*head)?;
    let (Head::Data { length, .. } | Head::Control { length, .. }) = head;
    let (body, rest) = rest.split_at_checked(length).ok_or(SpdyError::Short(0))?;
    *bytes = rest;
    Ok(Some(match head {
        Head::Data { id, fin, .. } => Frame::Data {
            id,
            fin,
            bytes: Bytes::copy_from_slice(body),
        },
        Head::Control { kind, fin, .. } => Frame::parse(kind, fin, body, decompressor)?,
    }))
}
