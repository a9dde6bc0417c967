//! Obtains certificates by `CertificateSigningRequest`: creates one, waits for its result, and creates it again if it
//! is deleted meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Failure, Writer};
use kube::Client;
use rcgen::KeyPair;
use serde_json::Value;
use tokio::time::Instant;

use super::certificate::{self, Certificate};
use super::rotate::Certifier;
use super::{CertificateRequest, IdentityError, unusable};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// Before the request is read or created again.
const POLL: Policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(5));
/// After this time, the request probably needs an administrator's approval.
const APPROVAL_HINT_DELAY: Duration = Duration::from_secs(5);
/// How often the hint is logged.
const APPROVAL_HINT_INTERVAL: Duration = Duration::from_mins(10);

pub struct CsrClient {
    writer: Writer,
    /// Stores the keys of pending requests.
    dir: PathBuf,
}

impl CsrClient {
    pub fn new(client: Client, dir: &Path) -> Self {
        Self {
            writer: Writer::new(client, Fence::open()),
            dir: dir.to_owned(),
        }
    }

    /// Returns the certificate chain as PEM.
    async fn request(
        &self,
        request: &CertificateRequest,
        key: &KeyPair,
    ) -> Result<String, IdentityError> {
        let name = request.name(key);
        self.create(request, key).await?;
        let get = Call::get(format!("{REQUESTS}/{name}"));
        let mut poll = Backoff::new(POLL);
        let mut hint_at = Instant::now() + APPROVAL_HINT_DELAY;
        loop {
            match self.writer.send(&get).await {
                Ok(answer) => {
                    let object = answer.tree().map_err(|failure| refused(&failure))?;
                    if let Some(chain) = result(&name, &object)? {
                        return Ok(chain);
                    }
                }
                // It was deleted meanwhile.
                Err(failure) if failure.is(404) => self.create(request, key).await?,
                Err(failure) if failure.pushes_back() || failure.unsure => {
                    tracing::warn!("reading certificate request {name} failed: {failure}");
                }
                Err(failure) => return Err(refused(&failure)),
            }
            if hint_at <= Instant::now() {
                hint_at = Instant::now() + APPROVAL_HINT_INTERVAL;
                tracing::warn!(
                    "certificate request {name} waits for an administrator: kubectl certificate approve {name}"
                );
            }
            poll.sleep().await;
        }
    }

    /// Succeeds if the request exists already.
    async fn create(
        &self,
        request: &CertificateRequest,
        key: &KeyPair,
    ) -> Result<(), IdentityError> {
        let object = request
            .object(key)
            .map_err(unusable("a certificate request"))?;
        let mut poll = Backoff::new(POLL);
        loop {
            let call = Call::create(REQUESTS, object.to_string());
            match self.writer.send(&call).await {
                Ok(_) => return Ok(()),
                Err(failure) if failure.is(409) => return Ok(()),
                Err(failure) if failure.pushes_back() || failure.unsure => {
                    tracing::warn!("creating a certificate request failed: {failure}");
                }
                Err(failure) => return Err(refused(&failure)),
            }
            poll.sleep().await;
        }
    }
}

#[async_trait]
impl Certifier for CsrClient {
    /// Waits for the certificate without a timeout, and stores it in `file`.
    async fn obtain(
        &self,
        request: &CertificateRequest,
        file: &Path,
    ) -> Result<Certificate, IdentityError> {
        let pending = self.dir.join(request.pending_file());
        let key = pending_key(&pending)?;
        let chain = match self.request(request, &key).await {
            // The next attempt uses another key, and so another request.
            Err(error @ IdentityError::RequestDenied { .. }) => {
                certificate::remove(&pending);
                return Err(error);
            }
            result => result?,
        };
        let new = Certificate::new(&chain, &key.serialize_pem());
        let new = new.inspect_err(|_| certificate::remove(&pending))?;
        new.write(file)?;
        certificate::remove(&pending);
        Ok(new)
    }
}

fn refused(failure: &Failure) -> IdentityError {
    match failure.code {
        Some(401) => IdentityError::Unauthorized,
        _ => IdentityError::Refused(failure.to_string()),
    }
}

fn pending_key(path: &Path) -> Result<KeyPair, IdentityError> {
    let stored = certificate::read(path)?;
    if let Some(key) = stored.and_then(|pem| KeyPair::from_pem(&pem).ok()) {
        return Ok(key);
    }
    let key = KeyPair::generate().map_err(unusable("a new key"))?;
    certificate::write(path, &key.serialize_pem())?;
    Ok(key)
}

/// The certificate chain; none while the request is pending.
fn result(name: &str, request: &Value) -> Result<Option<String>, IdentityError> {
    let status = &request["status"];
    for (kind, verdict) in [("Denied", "was denied"), ("Failed", "failed")] {
        let conditions = status["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        if let Some(condition) = conditions.find(|condition| condition["type"] == kind) {
            let text = |key: &str| condition[key].as_str().unwrap_or_default();
            let message = match text("message") {
                "" => text("reason"),
                message => message,
            };
            return Err(IdentityError::RequestDenied {
                name: name.to_owned(),
                verdict,
                message: message.to_owned(),
            });
        }
    }
    let Some(text) = status["certificate"]
        .as_str()
        .filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let pem = STANDARD.decode(text).ok();
    let pem = pem.and_then(|bytes| String::from_utf8(bytes).ok());
    let what = format!("the certificate of request {name}");
    pem.map(Some)
        .ok_or("it is not PEM")
        .map_err(unusable(&what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_result_of_a_request() {
        let check = |status: Value, expected: Result<Option<&str>, &str>| {
            let found = result("r", &json!({ "status": status }));
            let found = found.map_err(|error| error.to_string());
            let expected = expected.map(|some| some.map(str::to_owned));
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check(json!({}), Ok(None));
        check(json!({"conditions": [{"type": "Approved"}]}), Ok(None));
        check(
            json!({"certificate": STANDARD.encode("pem")}),
            Ok(Some("pem")),
        );
        let denied = json!([{"type": "Denied", "reason": "No", "message": "not you"}]);
        check(
            json!({ "conditions": denied }),
            Err("the certificate request r was denied: not you"),
        );
        let failed = json!([{"type": "Approved"}, {"type": "Failed", "reason": "Bad"}]);
        check(
            json!({ "conditions": failed }),
            Err("the certificate request r failed: Bad"),
        );
    }

    #[test]
    fn the_key_of_a_pending_request_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("client.pending.key");
        let first = pending_key(&path).unwrap().serialize_pem();
        assert_eq!(pending_key(&path).unwrap().serialize_pem(), first);
        std::fs::write(&path, "half a k").unwrap();
        assert_ne!(pending_key(&path).unwrap().serialize_pem(), first);
    }
}
