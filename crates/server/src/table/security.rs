//! The printers of roles, bindings and certificate signing requests.

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, CREATED_AT, Column, NAME, text as column, wide};
use super::duration::{human_duration, since};
use super::format::NONE;
use crate::tree::{int, list, text, text_or, time};

pub(super) const ROLE: &[Column] = &[NAME, CREATED_AT];

pub(super) const BINDING: &[Column] = &[
    NAME,
    column("Role", "The role that is granted."),
    AGE,
    wide("Users", "The users it is granted to."),
    wide("Groups", "The groups it is granted to."),
    wide("ServiceAccounts", "The service accounts it is granted to."),
];

pub(super) const SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    column("SignerName", "Who is asked to sign."),
    column("Requestor", "Who asks."),
    column(
        "RequestedDuration",
        "How long the certificate should be valid.",
    ),
    column("Condition", "What became of the request."),
];

pub(super) fn role(role: &Value, _now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(role, "metadata.name")),
        json!(text(role, "metadata.creationTimestamp")),
    ]
}

pub(super) fn binding(binding: &Value, now: Timestamp) -> Vec<Value> {
    let role = binding.get("roleRef").unwrap_or(&Value::Null);
    vec![
        json!(text(binding, "metadata.name")),
        json!(format!("{}/{}", text(role, "kind"), text(role, "name"))),
        json!(since(time(binding, "metadata.creationTimestamp"), now)),
        json!(subjects(binding, "User")),
        json!(subjects(binding, "Group")),
        json!(subjects(binding, "ServiceAccount")),
    ]
}

fn subjects(binding: &Value, kind: &str) -> String {
    let subjects = list(binding, "subjects").iter();
    let names = subjects
        .filter(|s| text(s, "kind") == kind)
        .map(|s| match kind {
            "ServiceAccount" => format!("{}/{}", text(s, "namespace"), text(s, "name")),
            _ => text(s, "name").to_owned(),
        });
    names.collect::<Vec<_>>().join(", ")
}

pub(super) fn signing_request(request: &Value, now: Timestamp) -> Vec<Value> {
    let duration =
        int(request, "spec.expirationSeconds").map_or_else(|| NONE.to_owned(), human_duration);
    vec![
        json!(text(request, "metadata.name")),
        json!(since(time(request, "metadata.creationTimestamp"), now)),
        json!(text_or(request, "spec.signerName", NONE)),
        json!(text(request, "spec.username")),
        json!(duration),
        json!(verdict(request)),
    ]
}

fn verdict(request: &Value) -> String {
    let has = |kind: &str| {
        list(request, "status.conditions")
            .iter()
            .any(|c| text(c, "type") == kind)
    };
    let mut verdict = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        verdict.push_str(",Failed");
    }
    if !text(request, "status.certificate").is_empty() {
        verdict.push_str(",Issued");
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_cell, check_in};
    use serde_json::{Value, json};

    const RBAC: &str = "rbac.authorization.k8s.io";

    #[test]
    fn roles_show_when_they_were_made() {
        for plural in ["roles", "clusterroles"] {
            check_in(
                RBAC,
                plural,
                json!({"metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"}}),
                json!(["r", "2026-01-01T00:00:00Z"]),
            );
        }
    }

    #[test]
    fn bindings() {
        for plural in ["rolebindings", "clusterrolebindings"] {
            check_in(
                RBAC,
                plural,
                json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": [
                    {"kind": "User", "name": "ann"}, {"kind": "User", "name": "bob"}, {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "namespace": "ns", "name": "sa"},
                ]}),
                json!([
                    "b",
                    "ClusterRole/admin",
                    "<unknown>",
                    "ann, bob",
                    "g",
                    "ns/sa"
                ]),
            );
        }
    }

    #[test]
    fn signing_requests() {
        check_in(
            "certificates.k8s.io",
            "certificatesigningrequests",
            json!({"metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:59:59Z"},
                   "spec": {"signerName": "s/x", "username": "u", "expirationSeconds": 3600}}),
            json!(["c", "1s", "s/x", "u", "60m", "Pending"]),
        );
        let verdict = |status: Value, printed: &str| {
            check_cell(
                "certificatesigningrequests",
                "Condition",
                &json!({"status": status}),
                printed,
            );
        };
        verdict(json!({"conditions": [{"type": "Approved"}]}), "Approved");
        verdict(
            json!({"conditions": [{"type": "Approved"}], "certificate": "YQ=="}),
            "Approved,Issued",
        );
        verdict(
            json!({"conditions": [{"type": "Approved"}, {"type": "Denied"}]}),
            "Denied",
        );
        verdict(
            json!({"conditions": [{"type": "Approved"}, {"type": "Failed"}]}),
            "Approved,Failed",
        );
        check_cell(
            "certificatesigningrequests",
            "RequestedDuration",
            &json!({}),
            "<none>",
        );
    }
}
