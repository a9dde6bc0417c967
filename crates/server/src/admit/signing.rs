//! Certificates are identities: who approves a request for one, and who signs it, needs the right to do so for
//! its signer, and nobody gets one that makes them a master.

use kennel_types::Verb;
use serde_json::{Value, json};

use crate::api::Api;
use crate::authorize::{Attributes, ResourceAttributes};
use crate::kinds::csr;
use crate::kinds::tree::{at, same, text};
use crate::registry::Resource;
use crate::request::{MASTERS, User};
use crate::status::{ApiError, Result};

/// The signer whose certificates this server takes for users'.
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

/// Checks what a new request asks for.
pub(super) fn ask(row: &'static Resource, request: &Value) -> Result<()> {
    if text(request, "spec.signerName") != CLIENTS {
        return Ok(());
    }
    let refuse = |why: &str| {
        let name = text(request, "metadata.name");
        Err(ApiError::forbidden(row, name, why))
    };
    match csr::organisations(request) {
        None => refuse("failed to parse CSR"),
        Some(groups) if groups.iter().any(|group| group == MASTERS) => refuse(&format!(
            "use of {CLIENTS} signer with {MASTERS} group is not allowed"
        )),
        Some(_) => Ok(()),
    }
}

/// Checks an approval, or a signature.
pub(crate) fn decide(
    api: &Api,
    user: &User,
    row: &'static Resource,
    subresource: &str,
    new: &Value,
    old: &Value,
) -> Result<()> {
    let changed = |path: &str| !same(at(new, path), at(old, path));
    let verb = match (row.kind, subresource) {
        ("CertificateSigningRequest", "approval") => Verb::Approve,
        ("CertificateSigningRequest", "status")
            if changed("status.certificate") || changed("status.conditions") =>
        {
            Verb::Sign
        }
        _ => return Ok(()),
    };
    let signer = text(old, "spec.signerName");
    if may(api, user, verb, signer) {
        return Ok(());
    }
    let shown = json!(signer);
    let why = format!("user not permitted to {verb} requests with signerName {shown}");
    let name = text(old, "metadata.name");
    Err(ApiError::forbidden(row, name, &why))
}

/// Whether the user may act for a signer, by its name or for all of its domain.
fn may(api: &Api, user: &User, verb: Verb<'_>, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let all = format!("{domain}/*");
    [signer, all.as_str()].into_iter().any(|name| {
        let asked = ResourceAttributes {
            verb,
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name,
            ..ResourceAttributes::default()
        };
        api.authorizer.allows(user, &Attributes::Resource(asked))
    })
}
