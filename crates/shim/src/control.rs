//! The protocol of a shim's control socket: a request line, then a reply, or frames in both directions.
//!
//! ```text
//!   reopen\n          reopen the log after a rename  ─▶ ok\n
//!   attach\n          ok\n, then frames: output to the client, stdin and sizes to the shim
//!   frame             1 byte kind, 4 bytes length (big-endian), payload
//! ```

/// The longest payload.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 10;
/// Kind and length.
const HEAD_BYTES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// An empty payload closes stdin.
    Stdin = 0,
    Stdout = 1,
    Stderr = 2,
    /// Columns and rows of the terminal.
    Resize = 3,
    /// The exit code.
    Exit = 4,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        let all = [
            Self::Stdin,
            Self::Stdout,
            Self::Stderr,
            Self::Resize,
            Self::Exit,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Appends frames with this payload.
pub fn put_frames(to: &mut Vec<u8>, kind: FrameKind, bytes: &[u8]) {
    for chunk in bytes.chunks(PAYLOAD_BYTES_MAX) {
        put_frame(to, kind, chunk);
    }
    if bytes.is_empty() {
        put_frame(to, kind, &[]);
    }
}

fn put_frame(to: &mut Vec<u8>, kind: FrameKind, bytes: &[u8]) {
    to.push(kind as u8);
    to.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend(bytes);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidFrame;

/// Removes the first frame. `None` if it is incomplete.
pub fn take_frame(from: &mut Vec<u8>) -> Result<Option<(FrameKind, Vec<u8>)>, InvalidFrame> {
    let Some((head, _)) = from.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let [kind, length @ ..] = *head;
    let kind = FrameKind::from_byte(kind).ok_or(InvalidFrame)?;
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(|_| InvalidFrame)?;
    if length > PAYLOAD_BYTES_MAX {
        return Err(InvalidFrame);
    }
    if from.len() < HEAD_BYTES + length {
        return Ok(None);
    }
    let bytes = from[HEAD_BYTES..HEAD_BYTES + length].to_vec();
    from.drain(..HEAD_BYTES + length);
    Ok(Some((kind, bytes)))
}

/// Columns and rows of a resize frame.
pub fn parse_size(bytes: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *bytes.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_parsed_across_reads() {
        let long = vec![7; PAYLOAD_BYTES_MAX + 3];
        let mut whole = Vec::new();
        put_frames(&mut whole, FrameKind::Stdout, b"hello");
        put_frames(&mut whole, FrameKind::Stderr, &long);
        put_frames(&mut whole, FrameKind::Stdin, b"");
        let expected = [
            (FrameKind::Stdout, b"hello".to_vec()),
            (FrameKind::Stderr, vec![7; PAYLOAD_BYTES_MAX]),
            (FrameKind::Stderr, vec![7; 3]),
            (FrameKind::Stdin, vec![]),
        ];
        for cut in [1, 4, 5, 9, PAYLOAD_BYTES_MAX, whole.len() - 1] {
            let mut buffer = Vec::new();
            let mut found = Vec::new();
            for part in [&whole[..cut], &whole[cut..]] {
                buffer.extend(part);
                while let Some(frame) = take_frame(&mut buffer).unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn invalid_frames_are_refused() {
        assert_eq!(
            take_frame(&mut b"GET / HTTP/1.1\r\n".to_vec()),
            Err(InvalidFrame)
        );
        assert_eq!(take_frame(&mut vec![0, 255, 0, 0, 0]), Err(InvalidFrame));
    }
}
