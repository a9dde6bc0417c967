//! What must hold for any bytes of a relayed WebSocket: the fuzz target of `kennel-testkit` calls this, and nothing else does.

use super::frame::FrameBoundaries;

/// Pieces in which a stream may be read.
const PIECES: [usize; 3] = [1, 3, 64];

/// Frames end at the same places however the stream is read.
pub fn frames(input: &[u8]) {
    let whole = ends(input, input.len().max(1));
    for piece in PIECES {
        assert_eq!(ends(input, piece), whole, "in pieces of {piece}");
    }
}

/// Where frames end; the last one may go on.
fn ends(input: &[u8], piece: usize) -> Vec<usize> {
    let (mut boundaries, mut at, mut ends) = (FrameBoundaries::default(), 0, Vec::new());
    for mut bytes in input.chunks(piece) {
        while !bytes.is_empty() {
            let taken = boundaries.advance(bytes);
            assert!(taken > 0 && taken <= bytes.len());
            bytes = &bytes[taken..];
            at += taken;
            if boundaries.is_between() {
                ends.push(at);
            }
        }
    }
    ends
}
