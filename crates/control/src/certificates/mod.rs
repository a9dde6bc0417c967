//! Certificate signing requests: [`kennel_core::certificates`] and the requester's RBAC roles decide which are approved and
//! signed.
//!
//! ```text
//!   request ─▶ approve (may the requester have it?) ─▶ sign (does the signer sign this?) ─▶ clean (an hour later)
//! ```
//!
//! The three controllers are independent: an administrator may do the work of any of them. Only what a bootstrap token
//! does not allow is denied; what no other rule approves waits for an administrator.

pub mod approve;
mod authority;
mod claims;
pub mod clean;
#[doc(hidden)]
pub mod fuzz;
mod joining;
mod request;
mod revoked;
pub mod sign;
mod subject;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use kennel_client::backoff::Policy;
use kennel_client::write::{Call, Writer};
use kennel_client::{Error, clock};
use serde_json::json;

use crate::frame::objects::{Objects, Verdict};
use crate::frame::{self, Setup, Watches};
use crate::informers::Informers;

pub use self::authority::{Authority, AuthorityError};
pub use self::request::names_in;

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// How many requests a controller looks at at once.
const AT_ONCE: usize = 16;
/// Before a request is looked at again.
const RETRY: Policy = Policy::exponential(Duration::from_millis(200), Duration::from_mins(5));

/// Runs a controller that reconciles each relevant request by itself, until `setup.stop` is cancelled.
fn run_each<R, F>(
    name: &'static str,
    informers: &mut Informers,
    is_relevant: fn(&CertificateSigningRequest) -> bool,
    reconcile: R,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<R, F>
where
    R: Fn(Arc<CertificateSigningRequest>) -> F + Send + 'static,
    F: Future<Output = Verdict> + Send + 'static,
{
    let mut watches = Watches::default();
    let requests = informers.certificate_requests.subscribe();
    watches.add("certificatesigningrequests", requests, |update| update);
    let controller = Objects::new(name, AT_ONCE, RETRY, is_relevant, reconcile);
    frame::run(controller, watches, setup)
}

/// The condition of this type, if it is true.
fn condition(
    request: &CertificateSigningRequest,
    kind: &str,
) -> Option<CertificateSigningRequestCondition> {
    let status = request.status.as_ref()?;
    let mut all = status.conditions.iter().flatten();
    // Conditions of before v1 have no status, and count as true.
    all.find(|condition| condition.type_ == kind && matches!(&*condition.status, "True" | ""))
        .cloned()
}

fn has_certificate(request: &CertificateSigningRequest) -> bool {
    let certificate = request.status.as_ref().and_then(|s| s.certificate.as_ref());
    certificate.is_some_and(|bytes| !bytes.0.is_empty())
}

fn new_condition(kind: &str, reason: &str, message: &str) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(clock::now().into()),
        last_transition_time: None,
    }
}

fn add_condition(
    request: &mut CertificateSigningRequest,
    condition: CertificateSigningRequestCondition,
) {
    let status = request.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(condition);
}

/// Replaces a subresource; `what` is that, for the log. The API answers 409 if the request has changed since it was
/// read. Returns whether it was replaced, and what to do next.
async fn replace(
    writer: &Writer,
    request: &CertificateSigningRequest,
    subresource: &str,
    what: &str,
) -> (bool, Verdict) {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let path = format!("{PATH}/{name}/{subresource}");
    match writer.send(&Call::replace(path, &json!(request))).await {
        Ok(_) => (true, Verdict::Done),
        // Deleted, or changed: the watch delivers which.
        Err(failure) if failure.is(404) || failure.is(409) => (false, Verdict::Done),
        Err(failure) => {
            tracing::warn!("{what} certificate request {name} failed: {failure}");
            (false, Verdict::Retry)
        }
    }
}
