//! A server, its administrator, and clients without rights.

use kennel_testkit::{Access, Kennel, Reply};
use serde_json::Value;

/// Something that only the known may read, and only with rights.
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A server under attack.
pub(crate) struct Target {
    pub(crate) kennel: Kennel,
    pub(crate) admin: Access,
}

impl Target {
    pub(crate) fn new() -> Self {
        // Requests that were smuggled in would be in the log.
        Self::started(&["server", "--log", "info,kennel::request=debug"])
    }

    /// A server started with these arguments.
    pub(crate) fn started(arguments: &[&str]) -> Self {
        let kennel = Kennel::start(env!("CARGO_BIN_EXE_kennel"), arguments);
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        Self { kennel, admin }
    }

    /// A client without a certificate.
    pub(crate) fn stranger(&self) -> Access {
        Access::stranger(self.kennel.address(), &self.kennel.data_dir())
    }

    /// A file below `pki/` in the data directory.
    pub(crate) fn pki(&self, name: &str) -> String {
        std::fs::read_to_string(self.kennel.data_dir().join("pki").join(name)).unwrap()
    }

    /// Creates an object as the administrator and returns it.
    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        let reply = self.admin.ask("POST", path, object.to_string().as_bytes());
        assert_eq!(reply.code, 201, "{}", reply.text());
        reply.json()
    }

    /// Deletes an object as the administrator, without grace.
    pub(crate) fn delete(&self, path: &str) {
        let options = br#"{"gracePeriodSeconds": 0}"#;
        let reply = self.admin.ask("DELETE", path, options);
        assert_eq!(reply.code, 200, "{}", reply.text());
    }

    /// A token of a service account of the default namespace.
    pub(crate) fn token(&self, account: &str, spec: &Value) -> String {
        let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
        let made = self.create(&path, &serde_json::json!({"spec": spec}));
        made["status"]["token"].as_str().unwrap().to_owned()
    }

    /// Asks for secrets with a bearer token.
    pub(crate) fn with_token(&self, token: &str) -> Reply {
        ask_with_token(&self.stranger(), token)
    }
}

/// Asks for secrets with a bearer token.
pub(crate) fn ask_with_token(access: &Access, token: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    access.ask_with("GET", SECRETS, &[("Authorization", &bearer)], b"")
}

/// The one refusal that all bad credentials get: nothing in it tells what was wrong with them.
#[track_caller]
pub(crate) fn unauthorized(reply: &Reply, attempt: &str) {
    let expected = r#"{"apiVersion":"v1","code":401,"kind":"Status","message":"Unauthorized","metadata":{},"reason":"Unauthorized","status":"Failure"}"#;
    let (code, text) = (reply.code, reply.text());
    assert_eq!((code, text.as_str()), (401, expected), "{attempt}");
    let names = reply.head.lines().filter_map(|line| line.split_once(':'));
    let mut names: Vec<String> = names.map(|(name, _)| name.to_lowercase()).collect();
    // Of the requests that the audit log records.
    names.retain(|name| name != "audit-id");
    names.sort();
    let expected = ["cache-control", "content-length", "content-type", "date"];
    assert_eq!(names, expected, "{attempt}: {}", reply.head);
}

/// An authenticated user of this name gets 403.
#[track_caller]
pub(crate) fn known_as(reply: &Reply, name: &str) {
    let text = reply.text();
    assert_eq!(reply.code, 403, "{text}");
    assert!(text.contains(&format!("User \\\"{name}\\\"")), "{text}");
}
