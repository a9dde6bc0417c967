//! The claims of a service-account token. [`super::keys`] signs them.

use serde_json::{Value, json};

/// The issuer, and the default audience.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The maximum lifetime of a token. Retired keys are kept for as long.
pub const LIFE_SECONDS_MAX: i64 = 365 * 24 * 60 * 60;

pub struct Claims<'a> {
    pub namespace: &'a str,
    /// Name and uid.
    pub account: (&'a str, &'a str),
    pub audiences: &'a [String],
    /// The objects the token is bound to: `{"pod": {"name": …, "uid": …}}`, or empty.
    pub bound: Value,
    /// In Unix seconds.
    pub issued_at: i64,
    /// In Unix seconds.
    pub expires_at: i64,
}

impl Claims<'_> {
    pub(super) fn to_value(&self) -> Value {
        let (name, uid) = self.account;
        let mut kubernetes = json!({
            "namespace": self.namespace, "serviceaccount": {"name": name, "uid": uid},
        });
        for (kind, object) in self.bound.as_object().into_iter().flatten() {
            kubernetes[kind] = object.clone();
        }
        json!({
            "iss": ISSUER,
            "sub": format!("system:serviceaccount:{}:{name}", self.namespace),
            "aud": self.audiences,
            "iat": self.issued_at,
            "nbf": self.issued_at,
            "exp": self.expires_at,
            "jti": uuid::Uuid::new_v4().to_string(),
            "kubernetes.io": kubernetes,
        })
    }
}
