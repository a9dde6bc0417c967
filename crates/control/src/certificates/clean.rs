//! The cleaner: deletes requests that are issued, refused or abandoned for long enough.

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kennel_client::Error;
use kennel_client::write::Call;
use kennel_core::certificates::lifetime::{self, Stage};
use kennel_types::{Identity, Timestamp};
use kube::Client;

use super::request::end_of;
use super::{PATH, condition, has_certificate};
use crate::frame::expiry::{Expirations, Expiring};
use crate::frame::{self, Setup, Watches};
use crate::informers::Informers;

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut watches = Watches::default();
    let requests = informers.certificate_requests.subscribe();
    watches.add("certificatesigningrequests", requests, |update| {
        update.map(|request| expiring(&request))
    });
    let writer = setup.writer(client);
    frame::run(
        Expirations::new("certificate cleaner", writer),
        watches,
        setup,
    )
}

fn expiring(request: &CertificateSigningRequest) -> Expiring {
    let id = Identity::of(&request.metadata);
    Expiring {
        label: format!("certificate request {}", id.name),
        at: expires_at(request),
        deletion: Call::delete(format!("{PATH}/{}", id.name), &id.uid),
        uid: id.uid,
    }
}

/// When a request is deleted.
fn expires_at(request: &CertificateSigningRequest) -> Timestamp {
    let timestamp = |time: &Option<Time>| time.as_ref().map(Timestamp::from).unwrap_or_default();
    let created = timestamp(&request.metadata.creation_timestamp);
    let since = |condition: CertificateSigningRequestCondition| {
        timestamp(&condition.last_update_time).max(created)
    };
    let refused = condition(request, "Denied").or_else(|| condition(request, "Failed"));
    let stage = if let Some(refused) = refused {
        Stage::Denied(since(refused))
    } else if let Some(approved) = condition(request, "Approved") {
        let status = request.status.as_ref();
        let certificate = status.and_then(|status| status.certificate.as_ref());
        match certificate.filter(|_| has_certificate(request)) {
            Some(certificate) => Stage::Issued(since(approved), end_of(&certificate.0)),
            None => Stage::Approved(since(approved)),
        }
    } else {
        Stage::Pending
    };
    lifetime::expires_at(created, stage)
}
