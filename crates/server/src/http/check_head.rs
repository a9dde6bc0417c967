//! Refuses ambiguous request heads: those that two HTTP implementations could read as two different
//! requests. The HTTP library refuses what HTTP itself forbids before.

use http::request::Parts;
use http::{HeaderName, Version, header};

use crate::request::Caller;
use crate::status::{ApiError, Result};

/// Headers that may occur once.
const SINGLE: [HeaderName; 5] = [
    header::HOST,
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    HeaderName::from_static("impersonate-user"),
    HeaderName::from_static("impersonate-uid"),
];

/// Refuses ambiguous requests. Requests of this process were never parsed, so they cannot be ambiguous.
pub(super) fn check(parts: &Parts, caller: &Caller) -> Result<()> {
    if caller.address.is_none() {
        return Ok(());
    }
    for name in &SINGLE {
        if parts.headers.get_all(name).iter().nth(1).is_some() {
            let why = format!("the request has more than one \"{name}\" header");
            return Err(ApiError::bad_request(why));
        }
    }
    // `host:port` and `*` are targets for proxies.
    if !parts.uri.path().starts_with('/') {
        return Err(ApiError::bad_request(
            "the target of the request is not a path",
        ));
    }
    if parts.version == Version::HTTP_11 && !parts.headers.contains_key(header::HOST) {
        return Err(ApiError::bad_request("missing required Host header"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::request::ConnectionIdentity;

    fn caller() -> Caller {
        Caller::remote(
            "192.0.2.1:1".parse().unwrap(),
            ConnectionIdentity::Anonymous,
        )
    }

    fn check_headers(version: Version, headers: &[(&str, &str)], expected: Option<&str>) {
        let mut request = Request::builder().version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let said = check(&parts, &caller()).err().map(|error| error.message);
        assert_eq!(said.as_deref(), expected, "{headers:?}");
    }

    #[test]
    fn single_headers_occur_once() {
        let host = ("host", "k");
        check_headers(Version::HTTP_11, &[host], None);
        let twice = |name| format!("the request has more than one \"{name}\" header");
        for name in [
            "host",
            "authorization",
            "content-type",
            "impersonate-user",
            "impersonate-uid",
        ] {
            let headers = [host, (name, "a"), (name, "a")];
            check_headers(Version::HTTP_11, &headers, Some(&twice(name)));
        }
        let groups = [host, ("impersonate-group", "a"), ("impersonate-group", "b")];
        check_headers(Version::HTTP_11, &groups, None);
    }

    #[test]
    fn the_target_is_a_path() {
        for (target, expected) in [
            ("/", true),
            ("//", true),
            ("https://kennel", true),
            ("https://kennel/api", true),
            ("kennel:443", false),
            ("*", false),
        ] {
            let request = Request::builder().uri(target).header("host", "k");
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(check(&parts, &caller()).is_ok(), expected, "{target}");
        }
    }

    #[test]
    fn a_host_is_named_where_http_demands_it() {
        let missing = Some("missing required Host header");
        check_headers(Version::HTTP_11, &[], missing);
        check_headers(Version::HTTP_10, &[], None);
        check_headers(Version::HTTP_2, &[], None);
    }
}
