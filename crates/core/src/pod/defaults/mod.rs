//! Defaults of pods and pod templates: the server applies them to every write, the node to static pod manifests.
//!
//! Every function is idempotent. Defaults that pods get and templates do not are in `pod_only`.

mod image;
mod pod_only;
mod volume;

use serde_json::{Map, Value, json};

use self::image::is_latest;
pub use self::pod_only::pod;
use crate::quantity::Quantity;

const GRACE_SECONDS: i64 = 30;
const TOKEN_SECONDS: i64 = 3600;
/// `0644`, the mode of files in secret, config map, downward API and projected volumes.
const FILE_MODE: i64 = 420;

type Fields = Map<String, Value>;

pub fn pod_spec(spec: &mut Fields) {
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill_text(spec, "schedulerName", "default-scheduler");
    fill(spec, "securityContext", || json!({}));
    fill(spec, "terminationGracePeriodSeconds", || {
        json!(GRACE_SECONDS)
    });
    mirror_service_account(spec);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, container);
    }
    each(spec, "volumes", volume::volume);
    if let Some(overhead) = fields(spec, "overhead") {
        round_up(overhead);
    }
    if let Some(resources) = fields(spec, "resources") {
        resource_lists(resources);
    }
}

/// A template always has metadata, which may be empty.
pub fn template(template: &mut Fields) {
    fill(template, "metadata", || json!({}));
    fill(template, "spec", || json!({}));
    if let Some(spec) = fields(template, "spec") {
        pod_spec(spec);
    }
}

/// The deprecated `serviceAccount` always equals `serviceAccountName`.
fn mirror_service_account(spec: &mut Fields) {
    let is_set = |spec: &Fields, key: &str| {
        let text = spec.get(key).and_then(Value::as_str);
        text.is_some_and(|text| !text.is_empty())
    };
    let (from, to) = if is_set(spec, "serviceAccountName") {
        ("serviceAccountName", "serviceAccount")
    } else if is_set(spec, "serviceAccount") {
        ("serviceAccount", "serviceAccountName")
    } else {
        return;
    };
    if spec.get(from) != spec.get(to) {
        let name = spec[from].clone();
        spec.insert(to.to_owned(), name);
    }
}

fn container(container: &mut Fields) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or("");
    let pull = pull_policy(image);
    fill_text(container, "imagePullPolicy", pull);
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    fill(container, "resources", || json!({}));
    if let Some(resources) = fields(container, "resources") {
        resource_lists(resources);
    }
    each(container, "ports", |port| {
        fill_text(port, "protocol", "TCP");
    });
    each(container, "env", |env| {
        if let Some(source) = fields(env, "valueFrom") {
            downward_source(source);
        }
    });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = fields(container, name) {
            self::probe(probe);
        }
    }
    if let Some(lifecycle) = fields(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(handler) = fields(lifecycle, name) {
                http_get(handler);
            }
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    }
}

fn downward_source(source: &mut Fields) {
    if let Some(reference) = fields(source, "fieldRef") {
        fill_text(reference, "apiVersion", "v1");
    }
    if let Some(reference) = fields(source, "resourceFieldRef") {
        fill(reference, "divisor", || json!("0"));
    }
}

fn probe(probe: &mut Fields) {
    fill_number(probe, "timeoutSeconds", 1);
    fill_number(probe, "periodSeconds", 10);
    fill_number(probe, "successThreshold", 1);
    fill_number(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = fields(probe, "grpc") {
        fill(grpc, "service", || json!(""));
    }
}

fn http_get(handler: &mut Fields) {
    if let Some(action) = fields(handler, "httpGet") {
        fill_text(action, "path", "/");
        fill_text(action, "scheme", "HTTP");
    }
}

fn resource_lists(resources: &mut Fields) {
    for name in ["limits", "requests"] {
        if let Some(list) = fields(resources, name) {
            round_up(list);
        }
    }
}

/// Rounds amounts finer than a thousandth up.
fn round_up(list: &mut Fields) {
    for amount in list.values_mut() {
        let given = Quantity::read(amount);
        let rounded = given.round_up_to_milli();
        if rounded != given {
            *amount = Value::from(rounded.to_string());
        }
    }
}

fn file_mode(source: &mut Fields) {
    fill(source, "defaultMode", || json!(FILE_MODE));
}

fn token_lifetime(token: &mut Fields) {
    fill(token, "expirationSeconds", || json!(TOKEN_SECONDS));
}

/// The object at `key`, if there is one.
pub fn fields<'a>(owner: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    owner.get_mut(key).and_then(Value::as_object_mut)
}

/// Applies `action` to each object in the list at `key`.
fn each(owner: &mut Fields, key: &str, mut action: impl FnMut(&mut Fields)) {
    let Some(items) = owner.get_mut(key).and_then(Value::as_array_mut) else {
        return;
    };
    for item in items {
        if let Some(item) = item.as_object_mut() {
            action(item);
        }
    }
}

/// Sets `key` if it is absent.
pub fn fill(owner: &mut Fields, key: &str, value: impl FnOnce() -> Value) {
    if !owner.contains_key(key) {
        owner.insert(key.to_owned(), value());
    }
}

/// Sets `key` if it is absent or empty.
pub fn fill_text(owner: &mut Fields, key: &str, text: &str) {
    let present = owner.get(key).and_then(Value::as_str);
    if present.is_none_or(str::is_empty) {
        owner.insert(key.to_owned(), Value::from(text));
    }
}

/// Sets `key` if it is absent or 0.
fn fill_number(owner: &mut Fields, key: &str, number: i64) {
    if owner.get(key).and_then(Value::as_i64).unwrap_or(0) == 0 {
        owner.insert(key.to_owned(), Value::from(number));
    }
}
