//! Credentials: tokens and certificate requests.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use kennel_server::kinds::csr;
use kennel_server::pki::Clock;
use kennel_server::pki::keys::{DAYS_DEFAULT, TokenKeys};
use kennel_server::registry::{RESOURCES, Resource};
use serde_json::{Value, json as tree};

/// Stands for the id of the server's key, which differs in each process.
const KEY_ID: &str = "KEY-ID";

/// Service-account tokens. The input is one; or its header, a line break and its claims, to be encoded. Nobody but the server can
/// sign one.
pub fn tokens(input: &[u8]) {
    let keys = keys();
    let text = String::from_utf8_lossy(input);
    let encoded = text.split_once('\n').map(|(header, claims)| {
        let header = header.replace(KEY_ID, keys.signing_id());
        let encode = |part: &str| URL_SAFE_NO_PAD.encode(part);
        let signature = "x".repeat(64);
        [encode(&header), encode(claims), encode(&signature)].join(".")
    });
    for token in encoded.iter().map(String::as_str).chain([&*text]) {
        let verified = keys.verify(token);
        assert!(verified.is_err(), "{token} is not signed: {verified:?}");
    }
}

fn keys() -> &'static TokenKeys {
    static KEYS: OnceLock<TokenKeys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let keys = TokenKeys::open(dir.path(), DAYS_DEFAULT, &Clock::default());
        keys.expect("an empty directory gets a key")
    })
}

/// Certificate requests, and certificates. The input is PEM, or DER to be wrapped. The signer reads the names that the
/// server shows to approvers.
pub fn certificate_requests(input: &[u8]) {
    let pem = if input.starts_with(b"-----") {
        String::from_utf8_lossy(input).into_owned()
    } else {
        let (kind, der) = ("CERTIFICATE REQUEST", STANDARD.encode(input));
        format!("-----BEGIN {kind}-----\n{der}\n-----END {kind}-----\n")
    };
    kennel_control::certificates::fuzz::certificate(&pem);
    kennel_control::certificates::fuzz::certificate(&pem.replace(" REQUEST", ""));
    let request = object(&pem);
    let row: &Resource = RESOURCES
        .iter()
        .find(|row| row.kind == "CertificateSigningRequest")
        .expect("the kind is served");
    let mistakes = row.strategy.validate_create(&request);
    let shown = (csr::common_name(&request), csr::organisations(&request));
    let Some((name, organisations)) = kennel_control::certificates::fuzz::subject(pem.as_bytes())
    else {
        return;
    };
    // What the server refuses is never signed.
    if mistakes.is_empty() {
        assert_eq!(shown.0.unwrap_or_default(), name, "{pem}");
        assert_eq!(shown.1, Some(organisations), "{pem}");
    }
}

fn object(pem: &str) -> Value {
    tree!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "a"},
        "spec": {
            "request": STANDARD.encode(pem), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    })
}
