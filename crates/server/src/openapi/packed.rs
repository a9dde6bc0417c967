//! A document as it is kept between requests: compressed.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::discovery::Document;

/// A compressed document. A tenth of the plain one, so that all of them together take little memory.
#[derive(Clone, Debug)]
pub struct Packed {
    /// In the gzip format, as most clients accept it.
    pub gzip: Bytes,
    /// The `ETag` of the plain document, which is that of the compressed one, too.
    pub etag: String,
}

impl Packed {
    pub(super) fn new(document: &Document) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(&document.body);
        let gzip = written.and_then(|()| encoder.finish());
        Self {
            gzip: gzip.expect("memory takes every write").into(),
            etag: document.etag.clone(),
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
