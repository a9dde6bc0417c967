//! Certificates of the nodes: from `CertificateSigningRequest`s that the benchmark creates, approves and deletes itself, so that
//! it works with any cluster whose administrator runs it.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::clock;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Failure, Writer};
use kennel_node::agent::identity::{Certificate, CertificateRequest};
use kube::Client;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::manifest::{NAMESPACE, NODE_LABEL};

pub(super) const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// Signs certificates of nodes, here and at upstream.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Longer than any benchmark: a certificate that outlives it is of little use.
const LIFETIME: Duration = Duration::from_hours(24);
/// Before a request is read again.
const POLL: Policy = Policy::exponential(Duration::from_millis(20), Duration::from_secs(1));
/// How long a signer may take: upstream's signs 20 a second by default, of those that are requested at once.
const SIGNING_TIMEOUT: Duration = Duration::from_mins(2);
/// The longest wait for a certificate to become valid: a server issues one that is valid from the second after an earlier one
/// of the same name was revoked.
const VALID_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Issuer {
    writer: Writer,
    /// Part of the requests' names, so that those of an earlier run are not in the way.
    run: String,
}

impl Issuer {
    /// `admin` must have the rights to create, approve and delete certificate requests.
    pub(super) fn new(admin: Client) -> Self {
        let mut run = uuid::Uuid::new_v4().simple().to_string();
        run.truncate(8);
        Self {
            writer: Writer::new(admin, Fence::open()),
            run,
        }
    }

    /// A certificate of the node of this name, which is valid now.
    pub(super) async fn issue(&self, node: &str) -> Result<Certificate> {
        let key = KeyPair::generate().context("cannot make a key")?;
        let name = format!("{NAMESPACE}-{node}-{}", self.run);
        let path = format!("{REQUESTS}/{name}");
        let create = Call::create(REQUESTS, request(&name, node, &key)?.to_string());
        let created = self.writer.send(&create).await;
        let mut object = created.map_err(|why| refused("create", &why))?.tree()?;
        let deadline = Instant::now() + SIGNING_TIMEOUT;
        let mut poll = Backoff::new(POLL);
        let chain = loop {
            if let Some(chain) = issued(&name, &object)? {
                break chain;
            }
            if !has_condition(&object, "Approved") {
                self.approve(&path, object).await?;
            }
            ensure!(
                Instant::now() < deadline,
                "the certificate request {name} is approved, and nobody has signed it for {} s: check that a signer for \
                 {SIGNER} runs (the controllers of `kennel up`, or kube-controller-manager with \
                 --cluster-signing-cert-file and --cluster-signing-key-file)",
                SIGNING_TIMEOUT.as_secs()
            );
            poll.sleep().await;
            let read = self.writer.send(&Call::get(path.as_str())).await;
            object = read.map_err(|why| refused("read", &why))?.tree()?;
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        match self.writer.send(&Call::delete(path, uid)).await {
            Err(why) if !why.is(404) => return Err(refused("delete", &why)),
            _ => {}
        }
        let certificate = Certificate::new(&chain, &key.serialize_pem())?;
        until_valid(&certificate).await;
        Ok(certificate)
    }

    /// An approver of the cluster may come first.
    async fn approve(&self, path: &str, mut object: Value) -> Result<()> {
        let approval = json!({
            "type": "Approved", "status": "True", "reason": "Benchmark",
            "message": "approved by kennel bench",
        });
        match &mut object["status"]["conditions"] {
            Value::Array(conditions) => conditions.push(approval),
            none => *none = json!([approval]),
        }
        let approved = Call::replace(format!("{path}/approval"), &object);
        match self.writer.send(&approved).await {
            Err(why) if !why.is(409) => Err(refused("approve", &why)),
            _ => Ok(()),
        }
    }
}

fn request(name: &str, node: &str, key: &KeyPair) -> Result<Value> {
    let pem = CertificateRequest::client(node).pem(key);
    let pem = pem.context("cannot make a certificate request")?;
    let (label, value) = NODE_LABEL;
    Ok(json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "labels": {label: value}},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": LIFETIME.as_secs(),
        },
    }))
}

fn refused(verb: &str, why: &Failure) -> anyhow::Error {
    let hint = match why.code {
        Some(401 | 403) => {
            ": --connections needs a kubeconfig that may create, approve and delete certificate requests of nodes, such as the \
             administrator's"
        }
        _ => "",
    };
    anyhow!("cannot {verb} a certificate request: {why}{hint}")
}

fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == kind)
}

/// The chain as PEM, once there is one.
fn issued(name: &str, object: &Value) -> Result<Option<String>> {
    for verdict in ["Denied", "Failed"] {
        if has_condition(object, verdict) {
            let conditions = &object["status"]["conditions"];
            bail!("the certificate request {name} was not signed ({verdict}): {conditions}");
        }
    }
    let Some(text) = object["status"]["certificate"].as_str() else {
        return Ok(None);
    };
    let bytes = STANDARD
        .decode(text)
        .context("a certificate is not base64")?;
    let chain = String::from_utf8(bytes).context("a certificate is not PEM")?;
    Ok(Some(chain).filter(|chain| !chain.is_empty()))
}

async fn until_valid(certificate: &Certificate) {
    let missing = certificate.not_before.saturating_mul(1000) - clock::now().as_millis();
    let missing = Duration::from_millis(u64::try_from(missing).unwrap_or(0));
    tokio::time::sleep(missing.min(VALID_WITHIN)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_signed_denied_or_open() {
        let check = |status: Value, expected: Result<Option<&str>, &str>| {
            let found = issued("r", &json!({ "status": status }));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), expected),
                (Err(found), Err(words)) => assert!(found.to_string().contains(words), "{found}"),
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        };
        check(json!({}), Ok(None));
        check(json!({"conditions": [{"type": "Approved"}]}), Ok(None));
        check(
            json!({"certificate": STANDARD.encode("pem")}),
            Ok(Some("pem")),
        );
        let denied = json!([{"type": "Denied", "message": "not you"}]);
        check(json!({"conditions": denied}), Err("not you"));
    }

    #[test]
    fn a_refusal_says_which_rights_are_needed() {
        let failure = |code| Failure {
            code: Some(code),
            message: "forbidden".to_owned(),
            ..Failure::default()
        };
        let text = refused("create", &failure(403)).to_string();
        assert!(text.contains("forbidden: --connections needs"), "{text}");
        let text = refused("create", &failure(500)).to_string();
        assert!(!text.contains("--connections"), "{text}");
    }
}
