//! Where WebSocket frames end in a stream of bytes. It reads lengths and nothing else.

/// The lengths in the second byte of a frame that stand for a longer length after it.
const LENGTH_OF_2_BYTES: u8 = 126;
const LENGTH_OF_8_BYTES: u8 = 127;
/// The bit of the second byte that says that a mask follows the length, and how long that is.
const MASKED: u8 = 0x80;
const MASK_BYTES: usize = 4;

/// The position in a frame.
#[derive(Debug, Default)]
pub(super) struct FrameBoundaries {
    /// The header so far, at most 14 bytes; empty within a payload.
    header: Vec<u8>,
    /// How much of the payload is still to come.
    payload: u64,
}

impl FrameBoundaries {
    /// Goes on in the stream, and returns how many of the bytes belong to the current frame: at least one of them.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.payload == 0 {
                self.header.push(bytes[at]);
                at += 1;
                let Some(payload) = payload_length(&self.header) else {
                    continue;
                };
                self.header.clear();
                self.payload = payload;
            } else {
                let left = bytes.len() - at;
                let taken = usize::try_from(self.payload).map_or(left, |payload| payload.min(left));
                at += taken;
                self.payload -= taken as u64;
            }
            if self.payload == 0 {
                return at;
            }
        }
        at
    }

    /// Whether the next byte begins a frame.
    pub(super) fn is_between(&self) -> bool {
        self.payload == 0 && self.header.is_empty()
    }
}

/// The length that a header announces, if it is whole.
fn payload_length(header: &[u8]) -> Option<u64> {
    let second = *header.get(1)?;
    let mask = if second & MASKED == 0 { 0 } else { MASK_BYTES };
    let (short, extended) = match second & !MASKED {
        LENGTH_OF_2_BYTES => (0, 2),
        LENGTH_OF_8_BYTES => (0, 8),
        length => (length, 0),
    };
    if header.len() < 2 + extended + mask {
        return None;
    }
    let length = header[2..2 + extended].iter();
    Some(length.fold(u64::from(short), |length, byte| {
        (length << 8) | u64::from(*byte)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of this many bytes, masked or not.
    fn frame(length: u16, masked: bool) -> Vec<u8> {
        let mask = if masked { MASKED } else { 0 };
        let mut frame = vec![0x82];
        if let Some(length) = u8::try_from(length).ok().filter(|length| *length < 126) {
            frame.push(mask | length);
        } else {
            frame.push(mask | LENGTH_OF_2_BYTES);
            frame.extend(length.to_be_bytes());
        }
        frame.extend([7; MASK_BYTES].iter().filter(|_| masked));
        frame.extend(vec![1; usize::from(length)]);
        frame
    }

    #[test]
    fn frames_end_where_their_lengths_say_however_they_are_read() {
        let frames = [
            frame(0, false),
            frame(3, true),
            frame(125, false),
            frame(126, false),
            frame(0, true),
            frame(1000, true),
        ];
        let ends: Vec<usize> = frames
            .iter()
            .scan(0, |end, frame| {
                *end += frame.len();
                Some(*end)
            })
            .collect();
        let stream = frames.concat();
        for size in [1, 2, 7, 128, 4096] {
            let (mut boundaries, mut at, mut seen) = (FrameBoundaries::default(), 0, Vec::new());
            for mut chunk in stream.chunks(size) {
                while !chunk.is_empty() {
                    let taken = boundaries.advance(chunk);
                    chunk = &chunk[taken..];
                    at += taken;
                    seen.extend(boundaries.is_between().then_some(at));
                }
            }
            assert_eq!(seen, ends, "in pieces of {size}");
        }
    }

    #[test]
    fn a_length_of_eight_bytes_is_read() {
        let mut boundaries = FrameBoundaries::default();
        let header = [&[0x82, LENGTH_OF_8_BYTES][..], &(1_u64 << 40).to_be_bytes()].concat();
        assert_eq!(boundaries.advance(&header), header.len());
        assert_eq!(boundaries.payload, 1 << 40);
        assert_eq!(boundaries.advance(&[0; 100]), 100);
        assert_eq!(boundaries.payload, (1 << 40) - 100);
    }
}
