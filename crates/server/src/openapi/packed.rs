//! A document as it is kept between requests: compressed. Parts that documents share are compressed once.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::discovery::Document;
use crate::discovery::document::hash;

/// The header of a gzip file (RFC 1952): no name, no time, an unknown file system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// An empty last block of a deflate stream (RFC 1951), which ends it.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// A part of documents, compressed on its own: blocks of a deflate stream that refer to nothing before them.
#[derive(Debug)]
pub(super) struct Part {
    blocks: Vec<u8>,
    checksum: Crc,
}

impl Part {
    pub(super) fn new(plain: &[u8]) -> Self {
        let mut compress = Compress::new(Compression::fast(), false);
        // A quarter is more than any of our parts takes.
        let mut blocks = Vec::with_capacity(plain.len() / 4 + 64);
        loop {
            let rest = usize::try_from(compress.total_in()).map_or(&[][..], |read| &plain[read..]);
            // A flush ends the last block at a whole byte, so that other blocks may follow.
            let done = compress.compress_vec(rest, &mut blocks, FlushCompress::Sync);
            done.expect("a deflate stream takes any bytes");
            // Room that is left was not needed.
            if blocks.len() < blocks.capacity() {
                break;
            }
            blocks.reserve(plain.len() / 4 + 64);
        }
        let mut checksum = Crc::new();
        checksum.update(plain);
        Self { blocks, checksum }
    }
}

/// A compressed document. A tenth of the plain one, so that all of them together take little memory.
#[derive(Clone, Debug)]
pub struct Packed {
    /// In the gzip format, as most clients accept it.
    pub gzip: Bytes,
    /// The `ETag` of the document, plain or compressed: a hash of the compressed one, of which there is less.
    pub etag: String,
}

impl Packed {
    /// A document of one part.
    pub(super) fn new(plain: &[u8]) -> Self {
        Self::join(&[&Part::new(plain)])
    }

    /// The document that consists of these parts.
    pub(super) fn join(parts: &[&Part]) -> Self {
        let length: usize = parts.iter().map(|part| part.blocks.len()).sum();
        let mut gzip = Vec::with_capacity(length + 32);
        let mut checksum = Crc::new();
        gzip.extend_from_slice(&GZIP_HEADER);
        for part in parts {
            gzip.extend_from_slice(&part.blocks);
            checksum.combine(&part.checksum);
        }
        gzip.extend_from_slice(&LAST_BLOCK);
        gzip.extend_from_slice(&checksum.sum().to_le_bytes());
        gzip.extend_from_slice(&checksum.amount().to_le_bytes());
        Self {
            etag: format!("\"{}\"", hash(&gzip)),
            gzip: gzip.into(),
        }
    }

    /// The plain document.
    pub fn document(&self) -> Document {
        let mut body = Vec::new();
        let read = GzDecoder::new(&*self.gzip).read_to_end(&mut body);
        read.expect("what was compressed here decompresses");
        Document {
            body: body.into(),
            etag: self.etag.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As random bytes do, which take more than a quarter.
    #[test]
    fn a_part_may_need_more_room_than_is_expected() {
        let mut random = fastrand::Rng::with_seed(1);
        for length in [0, 1, 63, 64, 65, 1_000, 100_000, 300_000] {
            let plain: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            assert!(*Packed::new(&plain).document().body == *plain, "{length}");
        }
    }

    #[test]
    fn a_document_is_its_parts_one_after_the_other() {
        let text = "{\"name\":\"value\"},".repeat(1_000);
        let long = Part::new(text.as_bytes());
        let [open, empty, close] = ["[", "", "]"].map(|text| Part::new(text.as_bytes()));
        let packed = Packed::join(&[&open, &long, &empty, &long, &close]);
        // The decoder checks the sum and the length, and reads one gzip file.
        let document = packed.document();
        assert!(document.body == format!("[{text}{text}]"));
        assert_eq!(document.etag, packed.etag);
        assert!(packed.gzip.len() * 10 < document.body.len());
        let other = Packed::join(&[&open, &long, &close]);
        assert_ne!(other.etag, packed.etag);
        assert_eq!(*Packed::new(b"").document().body, *b"");
    }
}
