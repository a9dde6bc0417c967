//! `OpenID` discovery: the issuer and the public keys, with which others verify our service-account tokens.
//! Authorisation decides who may read them.

use std::net::SocketAddr;

use http::{HeaderValue, header};
use serde_json::{Value, json};

use crate::pki::keys::TokenKeys;
use crate::pki::token::ISSUER;
use crate::response::Reply;

/// Keys change rarely.
const CACHE_CONTROL: &str = "public, max-age=3600";

/// The `OpenID` provider configuration of a server at this address.
pub(crate) fn document(address: SocketAddr) -> Reply {
    let document = json!({
        "issuer": ISSUER,
        "jwks_uri": format!("https://{address}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    cached(&document, "application/json")
}

/// The JSON Web Key Set.
pub(crate) fn keys(keys: &TokenKeys) -> Reply {
    cached(&keys.key_set(), "application/jwk-set+json")
}

fn cached(document: &Value, content_type: &'static str) -> Reply {
    let mut reply = Reply::text(200, content_type, document.to_string());
    let cached = HeaderValue::from_static(CACHE_CONTROL);
    reply.headers.push((header::CACHE_CONTROL, cached));
    reply
}
