//! The approver: approves kubelet certificates that the rules and the requester's RBAC roles allow, and denies those that
//! a bootstrap token does not allow. All other requests wait for an administrator.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{Error, api};
use kennel_core::certificates::serving::{self, CONFIRMED_ADDRESSES, Names, SOURCE_ADDRESS};
use kennel_core::certificates::{CertificateRequest, Permission, Signer};
use kube::Client;
use serde_json::{Value, json};

use super::joining::{self, Outcome};
use super::request::Parsed;
use super::{add_condition, condition, has_certificate, new_condition, replace, run_each};
use crate::frame::Setup;
use crate::frame::objects::Verdict;
use crate::informers::Informers;
use crate::nodes;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The names and addresses in the API server's certificate, which may be renewed.
pub type ReservedNames = Arc<dyn Fn() -> Names + Send + Sync>;

/// Runs until `setup.stop` is cancelled. No node gets a certificate for the `reserved` names, which are the API server's.
/// Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    reserved: ReservedNames,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let writer = setup.writer(client);
    let reconcile = move |request: Arc<CertificateSigningRequest>| {
        let (writer, reserved) = (writer.clone(), reserved.clone());
        async move { reconcile(&writer, &request, &*reserved).await }
    };
    run_each("certificate approver", informers, is_open, reconcile, setup)
}

/// A kubelet's request that is neither approved nor denied.
fn is_open(request: &CertificateSigningRequest) -> bool {
    let signer = Signer::from_name(&request.spec.signer_name);
    let nodes = matches!(signer, Some(Signer::KubeletClient | Signer::KubeletServing));
    let decided = ["Approved", "Denied"]
        .iter()
        .any(|kind| condition(request, kind).is_some());
    nodes && !decided && !has_certificate(request)
}

async fn reconcile(
    writer: &Writer,
    request: &CertificateSigningRequest,
    reserved: &(dyn Fn() -> Names + Send + Sync),
) -> Verdict {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let parsed = match Parsed::read(request) {
        Ok(parsed) => parsed,
        Err(why) => {
            tracing::info!("certificate request {name} is not approved: {why}");
            return Verdict::Done;
        }
    };
    let decision = match Signer::from_name(&request.spec.signer_name) {
        Some(Signer::KubeletClient) => evaluate_client(writer, request, &parsed).await,
        Some(Signer::KubeletServing) => {
            let shown = source_addresses(request);
            evaluate_serving(writer, &parsed.asked, shown, &reserved()).await
        }
        Some(Signer::Client) | None => return Verdict::Done,
    };
    match decision {
        Ok(Decision::Approve(message)) => {
            let approval = new_condition("Approved", "AutoApproved", message);
            decide(writer, request, approval, "approved").await
        }
        Ok(Decision::Deny(message)) => {
            tracing::info!("certificate request {name} is not approved: {message}");
            let denial = new_condition("Denied", "TokenNotAllowed", &message);
            decide(writer, request, denial, "denied").await
        }
        Ok(Decision::Ignore) => {
            let why = "no rule approves it";
            tracing::info!("certificate request {name} is not approved: {why}");
            Verdict::Done
        }
        Ok(Decision::Retry(why)) => {
            tracing::info!("certificate request {name} is not approved: {why}");
            Verdict::Retry
        }
        Err(failure) => {
            tracing::warn!("evaluating certificate request {name} failed: {failure}");
            Verdict::Retry
        }
    }
}

/// What to do with a request.
enum Decision {
    Approve(&'static str),
    /// For this reason, which the requester can do something about.
    Deny(String),
    /// Leave it to an administrator.
    Ignore,
    /// Not allowed now, for this reason; try again, because roles and nodes change.
    Retry(String),
}

async fn evaluate_client(
    writer: &Writer,
    request: &CertificateSigningRequest,
    parsed: &Parsed,
) -> Result<Decision, Failure> {
    let permissions = parsed.asked.permissions();
    for permission in permissions {
        if !allowed(writer, request, permission).await? {
            continue;
        }
        let approved = Decision::Approve(permission.message);
        return match joining::decide(writer, parsed).await? {
            Outcome::Allowed => Ok(approved),
            Outcome::Denied(why) => Ok(Decision::Deny(why)),
            Outcome::Waits(why) => Ok(Decision::Retry(why)),
        };
    }
    if permissions.is_empty() {
        return Ok(Decision::Ignore);
    }
    let tried: Vec<_> = permissions.iter().map(|one| one.subresource).collect();
    let tried = tried.join(" ");
    let why = format!("recognized as [{tried}] but subject access review was not approved");
    Ok(Decision::Retry(why))
}

/// Whether the requester may create such requests.
async fn allowed(
    writer: &Writer,
    request: &CertificateSigningRequest,
    permission: &Permission,
) -> Result<bool, Failure> {
    let spec = &request.spec;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": spec.username, "uid": spec.uid, "groups": spec.groups, "extra": spec.extra,
            "resourceAttributes": {
                "group": "certificates.k8s.io", "resource": "certificatesigningrequests",
                "verb": "create", "subresource": permission.subresource,
            },
        },
    });
    let answer = writer
        .send(&Call::create(REVIEWS, review.to_string()))
        .await?;
    Ok(answer.tree()?["status"]["allowed"] == true)
}

async fn evaluate_serving(
    writer: &Writer,
    asked: &CertificateRequest,
    mut shown: Vec<IpAddr>,
    reserved: &Names,
) -> Result<Decision, Failure> {
    let Some(node) = serving::node_of(asked) else {
        return Ok(Decision::Ignore);
    };
    let path = api::node_path(node);
    let own = match writer.send(&Call::get(path)).await {
        Ok(answer) => {
            let object = answer.tree()?;
            let confirmed = &object["metadata"]["annotations"][CONFIRMED_ADDRESSES];
            shown.extend(serving::addresses_in(
                confirmed.as_str().unwrap_or_default(),
            ));
            node_names(&object)
        }
        Err(failure) if failure.is(404) => {
            return Ok(Decision::Retry(format!("there is no node {node}")));
        }
        Err(failure) => return Err(failure),
    };
    if let Some(why) = serving::rejection(asked, node, &own, &shown, reserved) {
        return Ok(Decision::Retry(why));
    }
    for name in asked.dns_names.iter().map(|name| name.to_ascii_lowercase()) {
        // A node `a` may claim the host name `a.b`, which may be another node's name.
        if name != node && nodes::exists(writer, &name).await? {
            return Ok(Decision::Retry(format!("{name} is another node")));
        }
    }
    Ok(Decision::Approve(serving::MESSAGE))
}

/// The address that the request came from, which the API server has recorded.
fn source_addresses(request: &CertificateSigningRequest) -> Vec<IpAddr> {
    let extra = request.spec.extra.as_ref();
    let recorded = extra.and_then(|extra| extra.get(SOURCE_ADDRESS));
    let recorded = recorded.into_iter().flatten();
    recorded.filter_map(|text| text.parse().ok()).collect()
}

/// The names and addresses in a Node's status.
fn node_names(node: &Value) -> Names {
    let mut own = Names::default();
    let addresses = node["status"]["addresses"].as_array();
    for one in addresses.into_iter().flatten() {
        let text = one["address"].as_str().unwrap_or_default();
        match one["type"].as_str() {
            Some("Hostname" | "InternalDNS" | "ExternalDNS") => own.names.push(text.to_owned()),
            Some("InternalIP" | "ExternalIP") => {
                own.addresses.extend(text.parse::<IpAddr>().ok());
            }
            _ => {}
        }
    }
    own
}

/// Writes the condition.
async fn decide(
    writer: &Writer,
    request: &CertificateSigningRequest,
    condition: CertificateSigningRequestCondition,
    what: &str,
) -> Verdict {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let mut decided = request.clone();
    add_condition(&mut decided, condition);
    let (replaced, verdict) = replace(writer, &decided, "approval", "deciding about").await;
    if replaced {
        tracing::info!("certificate request {name} is {what}");
    }
    verdict
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kennel_client::fence::Fence;
    use kube::client::Body;

    use super::*;

    /// An API with nodes whose status claims the host names `a.b` and `a.c`.
    fn api_with(nodes: &'static [&'static str]) -> Writer {
        let service = tower::service_fn(move |request: Request<Body>| {
            let name = request.uri().path().rsplit('/').next().unwrap_or_default();
            let names = ["a.b", "a.c"].map(|name| json!({"type": "Hostname", "address": name}));
            let (code, body) = if nodes.contains(&name) {
                (200, json!({"status": {"addresses": names}}))
            } else {
                (404, json!({"kind": "Status", "reason": "NotFound"}))
            };
            let answer = Response::builder().status(code);
            let answer = answer.body(Body::from(body.to_string().into_bytes()));
            async { Ok::<_, Infallible>(answer.unwrap()) }
        });
        Writer::new(Client::new(service, "default"), Fence::open())
    }

    #[tokio::test]
    async fn no_node_gets_a_certificate_for_another_nodes_name() {
        let writer = api_with(&["a", "a.b"]);
        for (names, approved) in [
            (["a", "a.c"], true),
            (["a", "a.b"], false),
            (["a", "A.B"], false),
        ] {
            let user = "system:node:a".to_owned();
            let asked = CertificateRequest {
                username: user.clone(),
                common_name: user,
                organisations: vec!["system:nodes".to_owned()],
                usages: ["digital signature", "server auth"]
                    .map(str::to_owned)
                    .to_vec(),
                dns_names: names.map(str::to_owned).to_vec(),
                ..CertificateRequest::default()
            };
            let decision = evaluate_serving(&writer, &asked, Vec::new(), &Names::default()).await;
            let found = matches!(decision, Ok(Decision::Approve(_)));
            assert_eq!(found, approved, "{names:?}");
        }
    }
}
