//! Header blocks of SPDY/3, and their compression, whose state continues from one block to the next.
//!
//! An invalid block ends the connection, because the compression state of both sides no longer agrees. The decompressed
//! size of a block is bounded.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::dictionary::dictionary;
use super::error::SpdyError;

/// The largest decompressed block. Those of Kubernetes are a hundredth of it.
pub(super) const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// A count or a length within a block.
const NUMBER_BYTES: usize = 4;
/// The buffer grows in steps of this size.
const STEP_BYTES: usize = 4 * 1024;

/// Headers in the order they came; names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value of a header, by its name in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut block = Vec::new();
        let number = |block: &mut Vec<u8>, number: usize| {
            let number = u32::try_from(number).expect("headers of ours are few and short");
            block.extend_from_slice(&number.to_be_bytes());
        };
        number(&mut block, self.0.len());
        for (name, value) in &self.0 {
            for text in [name, value] {
                number(&mut block, text.len());
                block.extend_from_slice(text.as_bytes());
            }
        }
        block
    }

    pub(super) fn decode(block: &[u8]) -> Result<Self, SpdyError> {
        let mut rest = block;
        let count = take_number(&mut rest)?;
        let (mut headers, mut bytes) = (Self::default(), 0);
        for _ in 0..count {
            let name = take_text(&mut rest)?;
            let values = take_text(&mut rest)?;
            for value in values.split('\0') {
                // Each value repeats the name, so a short block could be as long as its square.
                bytes += 2 * NUMBER_BYTES + name.len() + value.len();
                if bytes > BLOCK_BYTES_MAX {
                    return Err(SpdyError::HeadersTooLarge);
                }
                headers.0.push((name.clone(), value.to_owned()));
            }
        }
        Ok(headers)
    }
}

fn take_number(rest: &mut &[u8]) -> Result<u32, SpdyError> {
    let (number, others) = rest.split_first_chunk().ok_or(SpdyError::Headers)?;
    *rest = others;
    Ok(u32::from_be_bytes(*number))
}

fn take_text(rest: &mut &[u8]) -> Result<String, SpdyError> {
    let length = usize::try_from(take_number(rest)?).map_err(|_| SpdyError::Headers)?;
    let (text, others) = rest.split_at_checked(length).ok_or(SpdyError::Headers)?;
    *rest = others;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Compresses the header blocks that we send.
pub(super) struct HeaderCompressor(Compress);

impl HeaderCompressor {
    pub(super) fn new() -> Self {
        let mut zlib = Compress::new(Compression::best(), true);
        let known = zlib.set_dictionary(&dictionary());
        known.expect("nothing has been compressed yet");
        Self(zlib)
    }

    pub(super) fn compress(&mut self, headers: &Headers) -> Vec<u8> {
        let block = headers.encode();
        let (before, mut compressed) = (self.0.total_in(), Vec::with_capacity(STEP_BYTES));
        loop {
            let done = usize::try_from(self.0.total_in() - before).unwrap_or(block.len());
            let rest = block.get(done..).unwrap_or_default();
            let step = self
                .0
                .compress_vec(rest, &mut compressed, FlushCompress::Sync);
            step.expect("compressing to memory does not fail");
            // Spare capacity means that all output was written.
            if compressed.len() < compressed.capacity() {
                return compressed;
            }
            compressed.reserve(STEP_BYTES);
        }
    }
}

/// Decompresses the header blocks that the peer sends.
pub(super) struct HeaderDecompressor(Decompress);

impl HeaderDecompressor {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    pub(super) fn decompress(&mut self, mut compressed: &[u8]) -> Result<Headers, SpdyError> {
        let mut block = Vec::new();
        while !compressed.is_empty() {
            let mut step = Vec::with_capacity(STEP_BYTES);
            let before = self.0.total_in();
            let status = self.step(compressed, &mut step)?;
            let read = usize::try_from(self.0.total_in() - before).unwrap_or(compressed.len());
            compressed = compressed.get(read..).unwrap_or_default();
            block.extend_from_slice(&step);
            if block.len() > BLOCK_BYTES_MAX {
                return Err(SpdyError::HeadersTooLarge);
            }
            if status == Status::StreamEnd || (read == 0 && step.is_empty()) {
                return Err(SpdyError::Headers);
            }
        }
        self.finish(&mut block)?;
        Headers::decode(&block)
    }

    /// Decompresses output that is still pending after all input was consumed.
    fn finish(&mut self, block: &mut Vec<u8>) -> Result<(), SpdyError> {
        loop {
            let mut step = Vec::with_capacity(STEP_BYTES);
            // Implementations report the end of the output as an error or as no output.
            let stepped = self.0.decompress_vec(&[], &mut step, FlushDecompress::Sync);
            if stepped.is_err() || step.is_empty() {
                return Ok(());
            }
            block.extend_from_slice(&step);
            if block.len() > BLOCK_BYTES_MAX {
                return Err(SpdyError::HeadersTooLarge);
            }
        }
    }

    fn step(&mut self, compressed: &[u8], out: &mut Vec<u8>) -> Result<Status, SpdyError> {
        let before = self.0.total_in();
        match self
            .0
            .decompress_vec(compressed, out, FlushDecompress::Sync)
        {
            Ok(status) => Ok(status),
            Err(error) if error.needs_dictionary().is_some() => {
                let known = self.0.set_dictionary(&dictionary());
                known.map_err(|_| SpdyError::Headers)?;
                let read = usize::try_from(self.0.total_in() - before).unwrap_or(compressed.len());
                let rest = compressed.get(read..).unwrap_or_default();
                let again = self.0.decompress_vec(rest, out, FlushDecompress::Sync);
                again.map_err(|_| SpdyError::Headers)
            }
            Err(_) => Err(SpdyError::Headers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(kind: &str) -> Headers {
        Headers::default()
            .with("streamType", kind)
            .with("port", "8080")
    }

    #[test]
    fn compression_state_continues_between_blocks() {
        let (mut compressor, mut decompressor) =
            (HeaderCompressor::new(), HeaderDecompressor::new());
        let mut lengths = Vec::new();
        for kind in ["error", "data", "error", "data"] {
            let compressed = compressor.compress(&stream(kind));
            let headers = decompressor.decompress(&compressed).unwrap();
            assert_eq!(headers.get("streamtype"), Some(kind));
            assert_eq!(headers.get("port"), Some("8080"));
            lengths.push(compressed.len());
        }
        assert!(lengths[2] < lengths[0], "{lengths:?}");
    }

    #[test]
    fn the_values_of_a_long_name_are_bounded() {
        let values = "\0".repeat(1000);
        let block = Headers::default().with(&"n".repeat(1000), values).encode();
        assert!(block.len() < 3000, "it is short");
        let decoded = Headers::decode(&block);
        assert!(matches!(decoded, Err(SpdyError::HeadersTooLarge)));
    }

    #[test]
    fn the_first_block_names_the_dictionary() {
        let compressed = HeaderCompressor::new().compress(&Headers::default());
        assert_eq!(
            compressed[1..6],
            [0xf9, 0xe3, 0xc6, 0xa7, 0xc2],
            "{compressed:x?}"
        );
    }

    #[test]
    fn large_blocks_survive() {
        let value: String = (0..40_000_u32)
            .map(|n| char::from(b'a' + u8::try_from(n * n % 26).unwrap()))
            .collect();
        let headers = Headers::default().with("x", value);
        let compressed = HeaderCompressor::new().compress(&headers);
        assert_eq!(
            HeaderDecompressor::new().decompress(&compressed).unwrap(),
            headers
        );
    }

    #[test]
    fn blocks_that_grow_too_large_are_refused() {
        let headers = Headers::default().with("x", "y".repeat(BLOCK_BYTES_MAX * 16));
        let compressed = HeaderCompressor::new().compress(&headers);
        assert!(compressed.len() < BLOCK_BYTES_MAX);
        let refused = HeaderDecompressor::new().decompress(&compressed);
        assert!(matches!(refused, Err(SpdyError::HeadersTooLarge)));
    }

    #[test]
    fn invalid_blocks_are_refused() {
        for bytes in [
            &b"GET / HTTP/1.1"[..],
            &[0; 100],
            &[0x78, 0xbb, 0, 0, 0, 0, 1],
        ] {
            assert!(
                HeaderDecompressor::new().decompress(bytes).is_err(),
                "{bytes:x?}"
            );
        }
        // More headers and longer texts than there are bytes.
        for block in [&[0xff; 4][..], &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, b'x']] {
            assert!(Headers::decode(block).is_err(), "{block:x?}");
        }
    }

    #[test]
    fn repeated_values_are_separate_headers() {
        let block = Headers::default().with("a", "1\u{0}2").encode();
        let headers = Headers::decode(&block).unwrap();
        assert_eq!(headers, Headers::default().with("a", "1").with("a", "2"));
    }
}
