//! A server, its administrator, and those who are not.

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
        Self::started(&["server"])
    }

    /// A server started with these arguments.
    pub(crate) fn started(arguments: &[&str]) -> Self {
        let kennel = Kennel::start(env!("CARGO_BIN_EXE_kennel"), arguments);
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        Self { kennel, admin }
    }

    /// Somebody without a certificate.
    pub(crate) fn stranger(&self) -> Access {
        Access::stranger(self.kennel.address(), &self.kennel.data_dir())
    }

    /// Creates an object as the administrator and returns it.
    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        let reply = self.admin.ask("POST", path, object.to_string().as_bytes());
        assert_eq!(reply.code, 201, "{}", reply.text());
        reply.json()
    }

    /// Asks for secrets with a bearer token.
    pub(crate) fn with_token(&self, token: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        self.stranger().ask_with("GET", SECRETS, &headers, b"")
    }
}

/// The one refusal that all bad credentials get: nothing in it tells what was wrong with them.
#[track_caller]
pub(crate) fn unauthorized(reply: &Reply) {
    let expected = r#"{"apiVersion":"v1","code":401,"kind":"Status","message":"Unauthorized","metadata":{},"reason":"Unauthorized","status":"Failure"}"#;
    assert_eq!((reply.code, reply.text().as_str()), (401, expected));
}
