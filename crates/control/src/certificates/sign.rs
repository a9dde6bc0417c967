//! The signer: signs approved requests whose certificate the named signer may issue.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kennel_client::{Error, clock};
use kennel_core::certificates::Signer;
use kennel_core::certificates::lifetime;
use kennel_types::Timestamp;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::authority::{Authority, AuthorityError};
use super::request::{Parsed, RequestError};
use super::{add_condition, condition, has_certificate, new_condition, replace, run_each};
use crate::frame::objects::Verdict;
use crate::informers::Informers;

/// Runs until `stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    authority: Arc<Authority>,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let writer = Writer::new(client, Fence::open());
    let reconcile = move |request: Arc<CertificateSigningRequest>| {
        let (writer, authority) = (writer.clone(), authority.clone());
        async move { reconcile(&writer, &request, &authority).await }
    };
    run_each(
        "certificate signer",
        informers,
        is_approved,
        reconcile,
        stop,
    )
}

/// Approved, neither denied nor signed yet, and for a signer of ours.
fn is_approved(request: &CertificateSigningRequest) -> bool {
    let is = |kind: &str| condition(request, kind).is_some();
    Signer::from_name(&request.spec.signer_name).is_some()
        && is("Approved")
        && !is("Denied")
        && !is("Failed")
        && !has_certificate(request)
}

/// Writes the certificate, or the condition `Failed`, to the status.
async fn reconcile(
    writer: &Writer,
    request: &CertificateSigningRequest,
    authority: &Authority,
) -> Verdict {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let mut signed = request.clone();
    match sign(request, authority) {
        Ok(certificate) => {
            let status = signed.status.get_or_insert_default();
            status.certificate = Some(ByteString(certificate.into_bytes()));
        }
        Err(error) => {
            let message = error.to_string();
            tracing::info!("certificate request {name} is not signed: {message}");
            let failed = new_condition("Failed", "SignerValidationFailure", &message);
            add_condition(&mut signed, failed);
        }
    }
    let what = "writing the status of";
    replace(writer, &signed, "status", what).await.1
}

/// Why a request is not signed. The text becomes the message of the request's condition.
#[derive(Debug, thiserror::Error)]
enum SignError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("this signer is not ours")]
    ForeignSigner,
    #[error("{0}")]
    Refused(String),
    #[error("the certificate authority has expired")]
    Expired,
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// The certificate of a request, as PEM.
fn sign(request: &CertificateSigningRequest, authority: &Authority) -> Result<String, SignError> {
    let parsed = Parsed::read(request)?;
    let signer = Signer::from_name(&request.spec.signer_name).ok_or(SignError::ForeignSigner)?;
    if let Some(why) = parsed.asked.rejection(signer) {
        return Err(SignError::Refused(why));
    }
    let now = Timestamp::from_millis(clock::now_ms());
    let validity = lifetime::validity(now, request.spec.expiration_seconds, authority.ends());
    Ok(authority.sign(&parsed, validity.ok_or(SignError::Expired)?)?)
}
