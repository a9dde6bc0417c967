//! OpenAPI documents: compressed, tagged, and the same for every client.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{Method, Request, header};
use serde_json::Value;

use crate::fixture::{TestServer, request};

const APPS: &str = "/openapi/v3/apis/apps/v1";

fn asking(path: &str, headers: &[(header::HeaderName, &str)]) -> Request<Bytes> {
    let mut asked = request(Method::GET, path, None);
    for (name, value) in headers {
        asked.headers_mut().insert(name, value.parse().unwrap());
    }
    asked
}

#[tokio::test]
async fn clients_that_accept_gzip_get_the_same_document_compressed() {
    let server = TestServer::new().await;
    for path in [APPS, "/openapi/v2"] {
        let plain = server.get(path).await;
        assert_eq!(plain.code, 200);
        assert!(plain.headers.get(header::CONTENT_ENCODING).is_none());
        let gzip = asking(path, &[(header::ACCEPT_ENCODING, "br, gzip;q=0.8")]);
        let gzip = server.send(gzip).await;
        assert_eq!(gzip.header(header::CONTENT_ENCODING), "gzip");
        assert_eq!(gzip.header(header::ETAG), plain.header(header::ETAG));
        let varies = gzip.headers.get_all(header::VARY).iter();
        assert!(varies.into_iter().any(|on| on == "Accept, Accept-Encoding"));
        let mut unpacked = Vec::new();
        let mut decoder = GzDecoder::new(&*gzip.body);
        decoder.read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == plain.body, "{path} is the same document");
        assert!(gzip.body.len() * 3 < plain.body.len(), "{path} is small");
        let refused = asking(path, &[(header::ACCEPT_ENCODING, "gzip;q=0")]);
        let refused = server.send(refused).await;
        assert!(refused.body == plain.body, "{path} without gzip");
    }
}

#[tokio::test]
async fn a_client_that_has_the_document_gets_nothing_again() {
    let server = TestServer::new().await;
    let etag = server.get(APPS).await.header(header::ETAG).to_owned();
    for encoding in ["gzip", "identity"] {
        let headers = [
            (header::IF_NONE_MATCH, etag.as_str()),
            (header::ACCEPT_ENCODING, encoding),
        ];
        let again = server.send(asking(APPS, &headers)).await;
        assert_eq!((again.code, again.body.len()), (304, 0), "{encoding}");
        assert!(again.headers.get(header::CONTENT_ENCODING).is_none());
    }
}

#[tokio::test]
async fn the_hash_in_the_index_is_the_tag_of_the_document() {
    let server = TestServer::new().await;
    let index = server.get("/openapi/v3").await.ok();
    for entry in index["paths"].as_object().unwrap().values() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let (_, hash) = url.split_once("?hash=").unwrap();
        let document = server.get(url).await;
        let tag = document.header(header::ETAG);
        assert_eq!(tag.trim_matches('"'), hash, "{url}");
        assert!(matches!(document.ok()["openapi"], Value::String(_)));
    }
}

#[tokio::test]
async fn a_url_with_a_hash_is_kept_for_ever_and_an_old_one_leads_to_the_new() {
    let server = TestServer::new().await;
    let index = server.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].clone();
    let url = url.as_str().unwrap();
    let current = server.get(url).await;
    assert_eq!(current.header(header::CACHE_CONTROL), "public, immutable");
    assert!(current.header(header::EXPIRES).ends_with(" GMT"));
    let stale = server.get(&format!("{APPS}?hash=OLD")).await;
    assert_eq!((stale.code, stale.body.len()), (301, 0));
    assert_eq!(stale.header(header::LOCATION), url);
    let without = server.get(APPS).await;
    assert_eq!(without.header(header::CACHE_CONTROL), "no-cache, private");
    assert!(without.headers.get(header::EXPIRES).is_none());
}
