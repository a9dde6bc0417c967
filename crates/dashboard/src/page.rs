//! The files of the page, embedded in the program and served compressed.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::reply::{Body, full};

/// A file of `page/`.
struct File {
    name: &'static str,
    /// In gzip.
    packed: &'static [u8],
}

const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page_table.rs"));

/// What `/` shows.
const DOCUMENT: &str = "index.html";

/// The bytes of all files as they are served.
pub fn compressed_bytes() -> usize {
    FILES.iter().map(|file| file.packed.len()).sum()
}

/// Whether the path is that of the document, which links may lead to.
pub(crate) fn is_document(path: &str) -> bool {
    path == "/"
}

/// The file at this path, if there is one.
pub(crate) fn response(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let name = path.strip_prefix('/')?;
    let name = if name.is_empty() { DOCUMENT } else { name };
    let file = FILES.iter().find(|file| file.name == name)?;
    Some(file.response(headers))
}

impl File {
    fn response(&self, headers: &HeaderMap) -> Response<Body> {
        let tag = self.tag();
        let known = headers.get(IF_NONE_MATCH);
        let mut response = Response::new(full(Bytes::new()));
        if known.is_some_and(|known| *known == tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else if accepts_gzip(headers) {
            *response.body_mut() = full(Bytes::from_static(self.packed));
            let gzip = HeaderValue::from_static("gzip");
            response.headers_mut().insert(CONTENT_ENCODING, gzip);
        } else {
            *response.body_mut() = full(self.unpacked().into());
        }
        let media_type = HeaderValue::from_static(self.media_type());
        let encoding = HeaderValue::from_static("accept-encoding");
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, media_type);
        headers.insert(ETAG, tag);
        headers.insert(VARY, encoding);
        response
    }

    /// From the checksum that gzip has in its last eight bytes, with the length.
    fn tag(&self) -> HeaderValue {
        let last = self.packed.last_chunk().copied().unwrap_or_default();
        let tag = format!("\"{:016x}\"", u64::from_le_bytes(last));
        HeaderValue::try_from(tag).expect("hexadecimal digits and quotes are allowed")
    }

    fn unpacked(&self) -> Vec<u8> {
        let mut content = Vec::new();
        let read = GzDecoder::new(self.packed).read_to_end(&mut content);
        read.expect("the build script has written valid gzip");
        content
    }

    fn media_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("json") => "application/json",
            _ => "application/octet-stream",
        }
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| {
        let mut codings = value.split(',').map(str::trim);
        codings.any(|coding| {
            coding == "gzip" || coding.starts_with("gzip;") && !coding.ends_with("q=0")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_media_type_and_unpacks() {
        assert!(FILES.iter().any(|file| file.name == DOCUMENT));
        for file in FILES {
            assert_ne!(file.media_type(), "application/octet-stream");
            assert!(!file.unpacked().is_empty(), "{}", file.name);
        }
    }

    #[test]
    fn the_page_is_small() {
        assert!(compressed_bytes() <= 150_000, "{}", compressed_bytes());
    }

    #[test]
    fn a_known_tag_needs_no_body() {
        let first = response("/", &HeaderMap::new()).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        let again = response("/", &headers).unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert!(response("/nothing.js", &HeaderMap::new()).is_none());
        assert!(response("/../Cargo.toml", &HeaderMap::new()).is_none());
    }
}
