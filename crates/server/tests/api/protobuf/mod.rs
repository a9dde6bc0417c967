//! Bodies in protobuf: what recent clients send means what the same object means in JSON.

mod differences;
pub(crate) mod encoder;
mod random;
mod recorded;
mod refusals;
mod requests;
mod round_trips;

use bytes::Bytes;
use http::{Method, Request, header};
use kennel_server::protobuf::MEDIA_TYPE;
use kennel_server::schema::{self, Type};
use serde_json::{Value, json};

use crate::fixture::{Answer, TestServer};
use encoder::Style;

/// A request with a body in protobuf.
fn request(method: Method, path: &str, body: Vec<u8>) -> Request<Bytes> {
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    let kind = MEDIA_TYPE.parse().unwrap();
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    request
}

fn type_named(name: &str) -> &'static Type {
    schema::find(name).unwrap_or_else(|| panic!("no type {name}"))
}

/// Sends an object as Go's clients do.
async fn send(server: &TestServer, method: Method, path: &str, ty: &str, object: &Value) -> Answer {
    let body = encoder::body(type_named(ty), object, Style::Go);
    server.send(request(method, path, body)).await
}

/// The type of the object that a body holds.
fn type_of(object: &Value) -> &'static Type {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("core", version));
    let package = group.split('.').next().unwrap();
    type_named(&format!(
        "{package}.{version}.{}",
        object["kind"].as_str().unwrap()
    ))
}

/// A tree without empty objects: Go writes many that a person would leave out.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(k, v)| (k.clone(), without_empty(v)));
            let is_kept = |v: &Value| v.as_object().is_none_or(|members| !members.is_empty());
            members.filter(|(_, v)| is_kept(v)).collect()
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

/// A tree without anything that is zero: Go writes all of it where it holds it by value.
fn without_zeros(value: &Value) -> Value {
    let is_zero = |value: &Value| {
        let zeros = [
            json!(0),
            json!(""),
            json!("0"),
            json!(false),
            json!({}),
            json!([]),
        ];
        zeros.contains(value)
    };
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(k, v)| (k.clone(), without_zeros(v)));
            members.filter(|(_, value)| !is_zero(value)).collect()
        }
        Value::Array(items) => items.iter().map(without_zeros).collect(),
        other => other.clone(),
    }
}

/// Says where two trees differ, since whole ones are too long to read.
#[track_caller]
fn same(found: &Value, expected: &Value, what: &str) {
    if let Some(where_) = difference(found, expected) {
        panic!("{what}: {where_}\nin {found}");
    }
}

fn difference(found: &Value, expected: &Value) -> Option<String> {
    let below = |step: String, found: &Value, expected: &Value| {
        difference(found, expected).map(|rest| format!("{step}.{rest}"))
    };
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys());
            names
                .into_iter()
                .find_map(|name| below(name.clone(), &found[name], &expected[name]))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (a, b))| below(at.to_string(), a, b))
        }
        _ => (found != expected).then(|| format!(" {found} is not {expected}")),
    }
}
