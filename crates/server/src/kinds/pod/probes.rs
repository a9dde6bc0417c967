//! Validates probes and lifecycle handlers.

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::kinds::check::{form, not_negative, one_of, port_or_name, require, require_text};
use crate::names;
use crate::tree::{int, list, number, text};

const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

/// Checks the lifecycle handlers and the three probes of one container. `grace_seconds` is how
/// long the pod may take to end.
pub(super) fn container(
    errors: &mut Errors,
    container: &Value,
    at: &Path,
    grace_seconds: Option<i64>,
) {
    if let Some(lifecycle) = container.get("lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(handler) = lifecycle.get(name) {
                let at = at.child("lifecycle").child(name);
                self::handler(errors, handler, &at, grace_seconds);
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(name) {
            self::probe(errors, name, probe, &at.child(name), grace_seconds);
        }
    }
}

fn probe(errors: &mut Errors, name: &str, probe: &Value, at: &Path, grace_seconds: Option<i64>) {
    handler(errors, probe, at, grace_seconds);
    for count in COUNTS {
        not_negative(errors, at, count, number(probe, count));
    }
    let own_grace = int(probe, "terminationGracePeriodSeconds");
    let wrong_grace = |why: &str, seconds: i64| {
        let at = at.child("terminationGracePeriodSeconds");
        FieldError::invalid(&at, seconds, why)
    };
    if let Some(seconds) = own_grace
        && seconds <= 0
    {
        errors.push(wrong_grace("must be greater than 0", seconds));
    }
    if name == "readinessProbe" {
        if let Some(seconds) = own_grace {
            errors.push(wrong_grace("must not be set for readinessProbes", seconds));
        }
    } else if number(probe, "successThreshold") != 1 {
        let given = Value::from(number(probe, "successThreshold"));
        errors.invalid(&at.child("successThreshold"), &given, "must be 1");
    }
}

fn handler(errors: &mut Errors, handler: &Value, at: &Path, grace_seconds: Option<i64>) {
    let mut found = false;
    for name in HANDLERS {
        let Some(action) = handler.get(name) else {
            continue;
        };
        let at = at.child(name);
        if found {
            let why = "may not specify more than 1 handler type";
            errors.forbidden(&at, why);
            continue;
        }
        found = true;
        match name {
            "exec" if list(action, "command").is_empty() => require(errors, &at, "command"),
            "exec" => {}
            "httpGet" => http_get(errors, action, &at),
            "sleep" => sleep(errors, action, &at, grace_seconds),
            _ => port(errors, action, &at),
        }
    }
    if !found {
        errors.required(at, "must specify a handler type");
    }
}

fn port(errors: &mut Errors, action: &Value, at: &Path) {
    let port = action
        .get("port")
        .cloned()
        .unwrap_or_else(|| Value::from(0));
    port_or_name(errors, &at.child("port"), &port);
}

fn http_get(errors: &mut Errors, action: &Value, at: &Path) {
    require_text(errors, action, at, "path");
    port(errors, action, at);
    one_of(
        errors,
        &at.child("scheme"),
        text(action, "scheme"),
        &SCHEMES,
    );
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        form(
            errors,
            at,
            "httpHeaders",
            name,
            names::http_header_name(name),
        );
    }
}

fn sleep(errors: &mut Errors, action: &Value, at: &Path, grace_seconds: Option<i64>) {
    let Some(grace) = grace_seconds else { return };
    let seconds = number(action, "seconds");
    if seconds < 0 || seconds > grace {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.invalid(at, seconds, &detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(container: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        super::container(&mut errors, container, &Path::new("c"), Some(30));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{container}");
    }

    #[test]
    fn probes_have_sensible_numbers() {
        let probe = |extra: &Value| {
            let mut probe = json!({"exec": {"command": ["x"]}, "successThreshold": 1});
            for (key, value) in extra.as_object().expect("an object") {
                probe[key] = value.clone();
            }
            probe
        };
        check(&json!({"livenessProbe": probe(&json!({}))}), &[]);
        check(
            &json!({"livenessProbe": probe(&json!({"successThreshold": 2}))}),
            &["c.livenessProbe.successThreshold: Invalid value: 2: must be 1"],
        );
        check(
            &json!({"readinessProbe": probe(&json!({"successThreshold": 2}))}),
            &[],
        );
        check(
            &json!({"readinessProbe": probe(&json!({"terminationGracePeriodSeconds": 2}))}),
            &[
                "c.readinessProbe.terminationGracePeriodSeconds: Invalid value: 2: must not be set for readinessProbes",
            ],
        );
        check(
            &json!({"startupProbe": probe(&json!({"periodSeconds": -1}))}),
            &[
                "c.startupProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            ],
        );
    }

    #[test]
    fn handlers_are_complete() {
        let start = |handler: &Value| json!({"lifecycle": {"postStart": handler}});
        check(
            &start(&json!({"exec": {}})),
            &["c.lifecycle.postStart.exec.command: Required value"],
        );
        check(
            &start(&json!({"tcpSocket": {"port": 0}})),
            &[
                "c.lifecycle.postStart.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
        );
        check(
            &start(&json!({"sleep": {"seconds": 31}})),
            &[
                "c.lifecycle.postStart.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
            ],
        );
        check(
            &start(&json!({"httpGet": {"path": "/", "port": "web", "scheme": "GOPHER"}})),
            &[
                "c.lifecycle.postStart.httpGet.scheme: Unsupported value: \"GOPHER\": supported values: \"HTTP\", \"HTTPS\"",
            ],
        );
    }
}
