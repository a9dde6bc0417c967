//! The signer: signs what was approved, if it is what the signer's certificates may be.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kennel_client::{Error, clock};
use kennel_core::certificates::Signer;
use kennel_core::certificates::age;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::authority::Authority;
use super::desk::{self, Verdict};
use super::request::Parsed;
use super::{add_condition, condition, has_certificate, new_condition, replace};
use crate::informers::Informers;

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    authority: Arc<Authority>,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let seen = informers.certificate_requests();
    let writer = Writer::new(client, Fence::open());
    let judge = move |request: Arc<CertificateSigningRequest>| {
        let (writer, authority) = (writer.clone(), authority.clone());
        async move { answer(&writer, &request, &authority).await }
    };
    desk::run("certificate signer", seen, stop, is_approved, judge)
}

/// Approved, not denied, not answered, and ours to sign.
fn is_approved(request: &CertificateSigningRequest) -> bool {
    let is = |kind: &str| condition(request, kind).is_some();
    Signer::named(&request.spec.signer_name).is_some()
        && is("Approved")
        && !is("Denied")
        && !is("Failed")
        && !has_certificate(request)
}

async fn answer(
    writer: &Writer,
    request: &CertificateSigningRequest,
    authority: &Authority,
) -> Verdict {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let mut answered = request.clone();
    match signed(request, authority) {
        Ok(certificate) => {
            let status = answered.status.get_or_insert_default();
            status.certificate = Some(ByteString(certificate.into_bytes()));
        }
        Err(why) => {
            tracing::info!("certificate request {name} is not signed: {why}");
            let failed = new_condition("Failed", "SignerValidationFailure", &why);
            add_condition(&mut answered, failed);
        }
    }
    match replace(writer, &answered, "status").await {
        Ok(()) => Verdict::Done,
        // Gone, or changed, and then the watch tells.
        Err(failure) if failure.is(404) || failure.is(409) => Verdict::Done,
        Err(failure) => {
            tracing::warn!("answering certificate request {name} failed: {failure}");
            Verdict::Again
        }
    }
}

/// The certificate, or why there is none.
fn signed(request: &CertificateSigningRequest, authority: &Authority) -> Result<String, String> {
    let parsed = Parsed::read(request)?;
    let signer = Signer::named(&request.spec.signer_name).ok_or("this signer is not ours")?;
    if let Some(why) = parsed.asked.refusal(signer) {
        return Err(why);
    }
    let now = clock::now_ms() / 1000;
    let validity = age::validity(now, request.spec.expiration_seconds, authority.ends());
    let validity = validity.ok_or("the certificate authority has expired")?;
    let certificate = authority.sign(&parsed, validity);
    certificate.map_err(|error| error.to_string())
}
