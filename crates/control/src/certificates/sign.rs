//! The signer: signs approved requests whose certificate the named signer may issue.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kennel_client::write::{Failure, Writer};
use kennel_client::{Error, clock};
use kennel_core::certificates::{Signer, lifetime, revocation};
use kennel_types::Timestamp;
use kube::Client;

use super::authority::{Authority, AuthorityError};
use super::request::{Parsed, RequestError};
use super::{add_condition, condition, has_certificate, new_condition, replace, revoked, run_each};
use crate::frame::Setup;
use crate::frame::objects::Verdict;
use crate::informers::Informers;

/// The approver may revoke earlier certificates in the second of its approval, and then as of the next second but one.
const OWN_REVOCATION: Duration = Duration::from_secs(1);

/// The certificate authority, which may be replaced.
pub type AuthoritySource = Arc<dyn Fn() -> Result<Authority, AuthorityError> + Send + Sync>;

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    authority: AuthoritySource,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let writer = setup.writer(client);
    let reconcile = move |request: Arc<CertificateSigningRequest>| {
        let (writer, authority) = (writer.clone(), authority.clone());
        async move { reconcile(&writer, &request, &*authority).await }
    };
    run_each(
        "certificate signer",
        informers,
        is_approved,
        reconcile,
        setup,
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
    authority: &(dyn Fn() -> Result<Authority, AuthorityError> + Send + Sync),
) -> Verdict {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let mut signed = request.clone();
    // Before the revocation is read: a certificate that is revoked meanwhile must be older than its revocation.
    let now = clock::now();
    let revoked = match revoked_before(writer, request).await {
        Ok(revoked) => revoked,
        Err(failure) => {
            tracing::warn!("evaluating certificate request {name} failed: {failure}");
            return Verdict::Retry;
        }
    };
    match authority()
        .map_err(SignError::from)
        .and_then(|authority| sign(request, &authority, now, revoked))
    {
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
    #[error("the certificates of the requester were revoked after the request was made")]
    Revoked,
    #[error("the certificates of the user were revoked after the request was approved")]
    RevokedSinceApproval,
    #[error("{}", revocation::unreadable(.0))]
    UnreadableRevocation(String),
    #[error("the certificate authority has expired")]
    Expired,
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// The time before which certificates of the subject are revoked. Only client certificates can be.
async fn revoked_before(
    writer: &Writer,
    request: &CertificateSigningRequest,
) -> Result<Option<Timestamp>, Failure> {
    match (
        Signer::from_name(&request.spec.signer_name),
        Parsed::read(request),
    ) {
        (Some(Signer::Client | Signer::KubeletClient), Ok(parsed)) => {
            revoked::before(writer, &parsed.asked.common_name).await
        }
        _ => Ok(None),
    }
}

/// The certificate of a request, as PEM.
fn sign(
    request: &CertificateSigningRequest,
    authority: &Authority,
    now: Timestamp,
    revoked: Option<Timestamp>,
) -> Result<String, SignError> {
    let parsed = Parsed::read(request)?;
    let signer = Signer::from_name(&request.spec.signer_name).ok_or(SignError::ForeignSigner)?;
    if let Some(why) = parsed.asked.rejection(signer) {
        return Err(SignError::Refused(why));
    }
    // With a certificate that is revoked now, the requester asked for another.
    let created = request.metadata.creation_timestamp.as_ref();
    let created = created.map(Timestamp::from).unwrap_or_default();
    let is_own = parsed.asked.username == parsed.asked.common_name;
    if is_own && revoked.is_some_and(|before| created < before) {
        return Err(SignError::Revoked);
    }
    if revoked == Some(revocation::EVERYTHING) {
        return Err(SignError::UnreadableRevocation(parsed.asked.common_name));
    }
    let approved = condition(request, "Approved").and_then(|approved| approved.last_update_time);
    let approved = approved.as_ref().map(Timestamp::from);
    let allowed = approved.map(|at| revocation::cutoff(at) + OWN_REVOCATION);
    if allowed.is_some_and(|allowed| revoked.is_some_and(|before| allowed < before)) {
        return Err(SignError::RevokedSinceApproval);
    }
    let issued = revocation::issue_time(now, revoked);
    let validity = lifetime::validity(issued, request.spec.expiration_seconds, authority.ends());
    Ok(authority.sign(&parsed, validity.ok_or(SignError::Expired)?)?)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;
    use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};

    use super::super::request::start_of;
    use super::*;

    const USER: &str = "system:node:n1";

    fn authority() -> Authority {
        let pair = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let cert = params.self_signed(&pair).unwrap();
        Authority::new(cert.pem(), pair.serialize_pem()).unwrap()
    }

    /// A request for the node's certificate that this user made at this time.
    fn request(requester: &str, created: i64) -> CertificateSigningRequest {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::OrganizationName, "system:nodes");
        subject.push(DnType::CommonName, USER);
        let pair = KeyPair::generate().unwrap();
        let pem = params.serialize_request(&pair).unwrap().pem().unwrap();
        let mut request = CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(pem.into_bytes()),
                signer_name: "kubernetes.io/kube-apiserver-client-kubelet".to_owned(),
                username: Some(requester.to_owned()),
                usages: Some(vec![
                    "client auth".to_owned(),
                    "digital signature".to_owned(),
                ]),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        };
        request.metadata.creation_timestamp = Some(Timestamp::from_secs(created).into());
        request
    }

    #[test]
    fn what_was_approved_before_a_revocation_is_not_signed_after_it() {
        let authority = authority();
        let now = Timestamp::from_millis(1_800_000_000_500);
        let check = |approved: i64, revoked: Timestamp, signed: bool| {
            let mut request = request("system:bootstrap:abcdef", 1_799_999_000);
            let mut approval = new_condition("Approved", "AutoApproved", "");
            approval.last_update_time = Some(Timestamp::from_secs(approved).into());
            add_condition(&mut request, approval);
            let found = sign(&request, &authority, now, Some(revoked));
            assert_eq!(found.is_ok(), signed, "{approved} {revoked} {found:?}");
        };
        let revoked = revocation::cutoff(now);
        check(1_799_999_998, revoked, false);
        // The approver revokes and approves.
        check(1_800_000_000, revoked, true);
        check(1_800_000_000, revocation::EVERYTHING, false);
    }

    #[test]
    fn a_revoked_node_gets_no_renewal_that_it_asked_for_before() {
        let authority = authority();
        let at = Timestamp::from_secs;
        let now = Timestamp::from_millis(1_800_000_000_500);
        let revoked = revocation::cutoff(now);
        let check = |requester: &str, created: i64, signed: bool| {
            let found = sign(&request(requester, created), &authority, now, Some(revoked));
            assert_eq!(found.is_ok(), signed, "{requester} {created} {found:?}");
            found.ok()
        };
        check(USER, 1_799_999_000, false);
        check(USER, 1_800_000_000, false);
        // With a token it joins again, in the same second, and its certificate is valid.
        let pem = check("system:bootstrap:abcdef", 1_800_000_000, true).unwrap();
        let issued = revocation::issued_at(start_of(pem.as_bytes()).unwrap());
        assert_eq!(issued, at(1_800_000_001));
        assert!(!revocation::is_revoked(issued, revoked));
        // Without a revocation, it renews it.
        assert!(sign(&request(USER, 1_799_999_000), &authority, now, None).is_ok());
    }
}
