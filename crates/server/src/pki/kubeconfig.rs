//! The administrator's kubeconfig.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// A kubeconfig with everything embedded. It is JSON, which every kubectl reads as YAML.
pub fn render(server: &str, ca_pem: &str, user: &str, cert_pem: &str, key_pem: &str) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kennel", "cluster": {
            "server": server, "certificate-authority-data": encode(ca_pem),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate-data": encode(cert_pem), "client-key-data": encode(key_pem),
        }}],
        "contexts": [{"name": "kennel", "context": {"cluster": "kennel", "user": user}}],
        "current-context": "kennel",
    });
    format!("{config:#}\n")
}
