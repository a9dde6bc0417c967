//! Admission of certificate signing requests. A certificate is an identity: approving a request and signing
//! it need the `approve` and `sign` rights for its signer, and no client certificate may name
//! `system:masters`.

use kennel_types::Verb;
use serde_json::{Value, json};

use super::{Admission, Notes, Write};
use crate::authorize::{Attributes, ResourceAttributes};
use crate::kinds::csr;
use crate::registry::{Part, Resource};
use crate::request::MASTERS;
use crate::status::{ApiError, Result};
use crate::tree::{at, same, text};

/// The signer whose certificates this server accepts as those of users.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The admission of certificate signing requests.
pub(crate) struct SigningAdmission;

impl Admission for SigningAdmission {
    fn create(&self, write: Write<'_>, request: &mut Value) -> Result<()> {
        csr::stamp_requester(request, write.user);
        check_subject(write.row, request)
    }

    fn validate(
        &self,
        write: Write<'_>,
        part: Part,
        new: &Value,
        old: Option<&Value>,
        _: &mut Notes,
    ) -> Result<()> {
        let Some(old) = old else { return Ok(()) };
        let changed = |path: &str| !same(at(new, path), at(old, path));
        let verb = match part {
            Part::Approval => Verb::Approve,
            Part::Status if changed("status.certificate") || changed("status.conditions") => {
                Verb::Sign
            }
            _ => return Ok(()),
        };
        let signer = text(old, "spec.signerName");
        if may(write, verb, signer) {
            return Ok(());
        }
        let shown = json!(signer);
        let why = format!("user not permitted to {verb} requests with signerName {shown}");
        let name = text(old, "metadata.name");
        Err(ApiError::forbidden(write.row, name, &why))
    }
}

/// Refuses a client certificate in the group `system:masters`.
fn check_subject(row: &'static Resource, request: &Value) -> Result<()> {
    if text(request, "spec.signerName") != CLIENT_SIGNER {
        return Ok(());
    }
    let refuse = |why: &str| {
        let name = text(request, "metadata.name");
        Err(ApiError::forbidden(row, name, why))
    };
    match csr::organisations(request) {
        None => refuse("failed to parse CSR"),
        Some(groups) if groups.iter().any(|group| group == MASTERS) => refuse(&format!(
            "use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        )),
        Some(_) => Ok(()),
    }
}

/// Whether the user may act for a signer, by its name or for all of its domain.
fn may(write: Write<'_>, verb: Verb<'_>, signer: &str) -> bool {
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
        let authorizer = &write.api.authorizer;
        authorizer.allows(write.user, &Attributes::Resource(asked))
    })
}
