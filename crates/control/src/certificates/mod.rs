//! Certificates for those who ask: which requests are approved and signed is up to
//! [`kennel_core::certificates`] and the roles of who asks.
//!
//! ```text
//!   request ─▶ approve (may who asks have it?) ─▶ sign (is it what the signer signs?) ─▶ clean (an hour later)
//! ```
//!
//! The three know nothing of each other: an administrator may take any one's place. None of them denies
//! anything: what is not approved by rule waits for an administrator.

pub mod approve;
mod authority;
pub mod clean;
mod der;
mod desk;
mod request;
pub mod sign;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kennel_client::write::{Call, Failure, Writer};
use serde_json::json;

pub use self::authority::{Authority, AuthorityError};
pub use self::request::names_in;

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// The time of a condition of this type that holds.
fn condition(
    request: &CertificateSigningRequest,
    kind: &str,
) -> Option<CertificateSigningRequestCondition> {
    let status = request.status.as_ref()?;
    let mut all = status.conditions.iter().flatten();
    // A condition without a status is from the time before they had one, and holds.
    all.find(|condition| condition.type_ == kind && matches!(&*condition.status, "True" | ""))
        .cloned()
}

fn has_certificate(request: &CertificateSigningRequest) -> bool {
    let certificate = request.status.as_ref().and_then(|s| s.certificate.as_ref());
    certificate.is_some_and(|bytes| !bytes.0.is_empty())
}

fn new_condition(kind: &str, reason: &str, message: &str) -> CertificateSigningRequestCondition {
    let now = k8s_openapi::jiff::Timestamp::now();
    CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: None,
    }
}

/// Adds a condition to a request's status.
fn add_condition(
    request: &mut CertificateSigningRequest,
    condition: CertificateSigningRequestCondition,
) {
    let status = request.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(condition);
}

/// Replaces a subresource of the version that was judged; one that has changed since is refused.
async fn replace(
    writer: &Writer,
    request: &CertificateSigningRequest,
    subresource: &str,
) -> Result<(), Failure> {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let path = format!("{PATH}/{name}/{subresource}");
    let call = Call::replace(path, &json!(request));
    writer.send(&call).await.map(drop)
}
