//! Tricks with HTTP itself: paths, headers, the borders between requests, and HTTP/2's own.

mod frames;
mod headers;
mod http2;
mod paths;
mod smuggling;

use kennel_server::pki::issue::Files;
use kennel_server::pki::{Authority, Clock};
use kennel_testkit::Access;
use serde_json::json;

use crate::unauthorized_clients::fixture::Target;

/// An authenticated user who may only read secrets in the namespace `mine`.
fn jane(target: &Target) -> Access {
    let group = "rbac.authorization.k8s.io";
    target.create("/api/v1/namespaces", &json!({"metadata": {"name": "mine"}}));
    target.create(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/mine/roles",
        &json!({"metadata": {"name": "looks"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]}),
    );
    target.create(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/mine/rolebindings",
        &json!({"metadata": {"name": "jane-looks"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "looks"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}]}),
    );
    let data = target.kennel.data_dir();
    let authority = Authority::open(&data.join("pki"), &Clock::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let issue = Files::new(&authority, dir.path(), Clock::default().now());
    let issued = issue.client("jane", "jane", Some("people"));
    let (cert, key) = issued.unwrap();
    Access::showing(target.kennel.address(), &data, &cert, &key)
}

/// It goes on as if nothing had happened.
fn is_well(target: &Target) {
    assert_eq!(target.stranger().ask("GET", "/readyz", b"").code, 200);
    let listed = target.admin.ask("GET", "/api/v1/nodes", b"");
    assert_eq!(listed.code, 200, "{}", listed.text());
    let log = target.kennel.log();
    assert!(!log.contains("panicked"), "{log}");
}
