//! Answers with documents that clients keep: `ETag`, `If-None-Match`, compression, and URLs that never change.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, header};

use crate::clock;
use crate::discovery::Document;
use crate::openapi;
use crate::request::accept;
use crate::request::path::Route;
use crate::response::Reply;
use crate::status::{ApiError, Result};
use crate::verbs::Call;

/// Answers OpenAPI requests.
pub(crate) fn describe(route: &Route, call: &Call) -> Result<Reply> {
    match route {
        Route::OpenApiV3 => {
            let index = openapi::v3_index();
            Ok(document_reply(index, openapi::JSON_CONTENT_TYPE, call))
        }
        Route::OpenApiV3Document(group, version) => {
            let document = openapi::v3_document(group, version);
            let document = document.ok_or_else(ApiError::no_such_resource)?;
            let current = document.etag.trim_matches('"');
            let asked = call.query.raw("hash").filter(|hash| !hash.is_empty());
            if asked.is_some_and(|hash| hash != current) {
                return Ok(moved(&openapi::v3_url(group, version, current)));
            }
            let mut reply = packed_reply(document, openapi::JSON_CONTENT_TYPE, call);
            if asked.is_some() {
                keep_for_ever(&mut reply);
            }
            Ok(reply)
        }
        Route::OpenApiV2 => {
            let accept = call.header(header::ACCEPT).unwrap_or_default();
            let (document, content_type) = if accept.contains("protobuf") {
                let content_type = openapi::V2_PROTOBUF_CONTENT_TYPE;
                (openapi::v2_protobuf(), content_type)
            } else {
                (openapi::v2_json(), openapi::JSON_CONTENT_TYPE)
            };
            Ok(packed_reply(document, content_type, call))
        }
        _ => Err(ApiError::no_such_resource()),
    }
}

/// A document that clients may have cached.
pub(crate) fn document_reply(
    document: &Document,
    content_type: &'static str,
    call: &Call,
) -> Reply {
    let known = call
        .header(header::IF_NONE_MATCH)
        .is_some_and(|tags| document.matches(tags));
    let mut reply = if known {
        Reply::json(304, Bytes::new())
    } else {
        Reply::json(200, document.body.clone())
    };
    reply.content_type = content_type;
    if let Ok(etag) = HeaderValue::from_str(&document.etag) {
        reply.headers.push((header::ETAG, etag));
    }
    reply
        .headers
        .push((header::VARY, HeaderValue::from_static("Accept")));
    reply
}

/// The answer to a client that asks for a document by the hash of an earlier one.
fn moved(url: &str) -> Reply {
    let mut reply = Reply::json(301, Bytes::new());
    if let Ok(url) = HeaderValue::from_str(url) {
        reply.headers.push((header::LOCATION, url));
    }
    reply
}

/// A URL with a hash always has the same document.
fn keep_for_ever(reply: &mut Reply) {
    let immutable = HeaderValue::from_static("public, immutable");
    reply.headers.push((header::CACHE_CONTROL, immutable));
    let expires = (clock::now() + A_YEAR).to_http_date();
    if let Ok(expires) = HeaderValue::from_str(&expires) {
        reply.headers.push((header::EXPIRES, expires));
    }
}

/// The longest time that HTTP allows a document to be kept.
const A_YEAR: Duration = Duration::from_hours(365 * 24);

/// An OpenAPI document, compressed if the client accepts that.
fn packed_reply(packed: &openapi::Packed, content_type: &'static str, call: &Call) -> Reply {
    let encodings = call.header(header::ACCEPT_ENCODING);
    let is_gzip = accept::gzip(encodings);
    let document = if is_gzip {
        Document {
            body: packed.gzip.clone(),
            etag: packed.etag.clone(),
        }
    } else {
        packed.document()
    };
    let mut reply = document_reply(&document, content_type, call);
    let headers = &mut reply.headers;
    let vary = HeaderValue::from_static("Accept, Accept-Encoding");
    headers.push((header::VARY, vary));
    if is_gzip && reply.code == 200 {
        let gzip = HeaderValue::from_static("gzip");
        headers.push((header::CONTENT_ENCODING, gzip));
    }
    reply
}
