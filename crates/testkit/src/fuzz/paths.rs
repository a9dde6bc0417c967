//! Where requests go: paths, queries and headers.

use std::fmt::Write as _;

use kennel_server::request::path::{self, Place, Route};
use kennel_server::request::{accept, query::Query};

/// Paths, queries and Accept headers.
pub fn paths(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let text = text.trim_end_matches('\n');
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    if let Some(Route::Objects(place)) = path::parse(path) {
        let canonical = canonical(&place);
        let again = path::parse(&canonical);
        let Some(Route::Objects(again)) = again else {
            panic!("{path:?}, as {canonical:?}, is {again:?}");
        };
        assert_eq!(format!("{again:?}"), format!("{place:?}"), "{path:?}");
    }
    let query = Query::parse(query);
    for name in ["watch", "allowWatchBookmarks", "sendInitialEvents"] {
        let _flag = query.flag(name).map_err(|error| error.to_value());
    }
    for name in ["limit", "timeoutSeconds", "gracePeriodSeconds"] {
        let _number = query.number(name).map_err(|error| error.to_value());
    }
    let _option = query.dry_run("CreateOptions").map_err(|e| e.to_value());
    let _option = query
        .field_validation("CreateOptions")
        .map_err(|e| e.to_value());
    let _option = query.resource_version().map_err(|e| e.to_value());
    let _option = query.version_match().map_err(|e| e.to_value());
    let _form = accept::form(Some(text)).map_err(|e| e.to_value());
    let _version = accept::aggregated_discovery(Some(text));
}

fn push_encoded(path: &mut String, name: &str) {
    for byte in name.bytes() {
        write!(path, "%{byte:02X}").expect("writing to a string cannot fail");
    }
}

/// The one spelling of a path, with every byte of every name encoded.
fn canonical(place: &Place) -> String {
    let row = place.row;
    let root = if row.group.is_empty() { "api" } else { "apis" };
    let mut path = format!("/{root}/{}", row.api_version());
    if let Some(namespace) = &place.namespace {
        path.push_str("/namespaces/");
        push_encoded(&mut path, namespace);
    }
    path.push('/');
    path.push_str(row.plural);
    for segment in place.name.iter().chain(&place.subresource) {
        path.push('/');
        push_encoded(&mut path, segment);
    }
    path
}
