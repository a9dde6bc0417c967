//! What a service-account token says. Who signs it is the business of [`super::keys`].

use serde_json::{Value, json};

/// Who signs, and for whom unless a request says otherwise.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The longest life of a token, in seconds: a retired key must be kept as long as a token that it
/// has signed can live.
pub const LIFE_SECONDS_MAX: i64 = 365 * 24 * 60 * 60;

/// What a token says.
pub struct Claims<'a> {
    /// The account's namespace.
    pub namespace: &'a str,
    /// The account's name and uid.
    pub account: (&'a str, &'a str),
    /// For whom the token is good.
    pub audiences: &'a [String],
    /// The objects the token is bound to: `{"pod": {"name": …, "uid": …}}`, or empty.
    pub bound: Value,
    /// When it was made, in seconds.
    pub issued_at: i64,
    /// When it ends, in seconds.
    pub expires_at: i64,
}

impl Claims<'_> {
    /// The token's body.
    pub(super) fn to_value(&self) -> Value {
        let (name, uid) = self.account;
        let mut about = json!({
            "namespace": self.namespace, "serviceaccount": {"name": name, "uid": uid},
        });
        for (kind, object) in self.bound.as_object().into_iter().flatten() {
            about[kind] = object.clone();
        }
        json!({
            "iss": ISSUER,
            "sub": format!("system:serviceaccount:{}:{name}", self.namespace),
            "aud": self.audiences,
            "iat": self.issued_at,
            "nbf": self.issued_at,
            "exp": self.expires_at,
            "jti": uuid::Uuid::new_v4().to_string(),
            "kubernetes.io": about,
        })
    }
}
