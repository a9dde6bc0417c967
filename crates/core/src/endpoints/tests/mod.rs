//! Tests of the endpoints rules: tables for the form of objects, and random histories.

mod fake_api;
mod fixture;
mod forms;
mod histories;
mod large;
mod writes;

use std::sync::Arc;

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::*;

/// A service `web` in `ns` with this spec.
fn service(spec: &Value) -> ServiceFacts {
    named_service("web", spec)
}

fn named_service(name: &str, spec: &Value) -> ServiceFacts {
    let mut with_selector = spec.clone();
    if with_selector["selector"].is_null() {
        with_selector["selector"] = json!({"app": "web"});
    }
    ServiceFacts {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        ..ServiceFacts::of_spec(&serde_json::from_value(with_selector).unwrap())
    }
}

/// A ready pod of `web`.
fn pod(number: u8) -> PodFacts {
    numbered_pod(number.into())
}

fn numbered_pod(number: u16) -> PodFacts {
    let [high, low] = number.to_be_bytes();
    let labels = [("app".to_owned(), "web".to_owned())];
    PodFacts {
        namespace: "ns".into(),
        name: format!("p{number:03}").into(),
        uid: format!("u{number:03}").into(),
        labels: Arc::new(labels.into()),
        node: Some("n1".into()),
        addresses: vec![[10, 0, high, low].into()],
        ready: true,
        ready_changed: Some(Timestamp::from_secs(100)),
        terminating: false,
        terminal: false,
        hostname: None,
        subdomain: None,
        ports: Vec::new().into(),
    }
}
