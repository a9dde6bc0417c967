//! Where certificates are asked for: a `CertificateSigningRequest` that is made, waited for, and made again if it
//! vanishes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Failure, Writer};
use kube::Client;
use rcgen::KeyPair;
use serde_json::Value;
use tokio::time::Instant;

use super::pair::{self, Pair};
use super::{IdentityError, Wanted};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// How long to wait before the answer is looked for; doubled each time.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(5);
/// What takes longer waits for somebody.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often people are reminded.
const REMIND: Duration = Duration::from_mins(10);

/// See the [module](self).
pub struct Desk {
    writer: Writer,
    /// Where keys are kept that a certificate was asked for.
    dir: PathBuf,
}

impl Desk {
    /// Asks as this client's user.
    pub fn new(client: Client, dir: &Path) -> Self {
        Self {
            writer: Writer::new(client, Fence::open()),
            dir: dir.to_owned(),
        }
    }

    /// Asks, waits for as long as it takes, and keeps what it gets in `file`.
    pub async fn obtain(&self, wanted: &Wanted, file: &Path) -> Result<Pair, IdentityError> {
        let pending = self
            .dir
            .join(format!("{}.pending.key", wanted.purpose.word()));
        let key = pending_key(&pending)?;
        let chain = match self.ask(wanted, &key).await {
            // The next try is a new one.
            Err(error @ IdentityError::TurnedDown { .. }) => {
                pair::remove(&pending);
                return Err(error);
            }
            answer => answer?,
        };
        let pair =
            Pair::new(&chain, &key.serialize_pem()).inspect_err(|_| pair::remove(&pending))?;
        pair.write(file)?;
        pair::remove(&pending);
        Ok(pair)
    }

    async fn ask(&self, wanted: &Wanted, key: &KeyPair) -> Result<String, IdentityError> {
        let name = wanted.name(key);
        self.create(wanted, key).await?;
        let (mut wait, began) = (LOOK, Instant::now());
        let mut remind_at = began + PATIENCE;
        loop {
            match self
                .writer
                .send(&Call::get(format!("{REQUESTS}/{name}")))
                .await
            {
                Ok(answer) => {
                    let request = answer.tree().map_err(|failure| refused(&failure))?;
                    if let Some(chain) = verdict(&name, &request)? {
                        return Ok(chain);
                    }
                }
                // It was cleared away meanwhile.
                Err(failure) if failure.is(404) => self.create(wanted, key).await?,
                Err(failure) if failure.pushes_back() || failure.unsure => {
                    tracing::warn!("looking for certificate request {name} failed: {failure}");
                }
                Err(failure) => return Err(refused(&failure)),
            }
            if remind_at <= Instant::now() {
                remind_at = Instant::now() + REMIND;
                tracing::warn!(
                    "certificate request {name} waits for an administrator: kubectl certificate approve {name}"
                );
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LOOK_MAX);
        }
    }

    /// Makes the request; fine if it is there.
    async fn create(&self, wanted: &Wanted, key: &KeyPair) -> Result<(), IdentityError> {
        let unusable = |error: rcgen::Error| IdentityError::Unusable {
            what: "a certificate request".to_owned(),
            why: error.to_string(),
        };
        let object = wanted.object(key).map_err(unusable)?;
        let mut wait = LOOK;
        loop {
            let call = Call::create(REQUESTS, object.to_string());
            match self.writer.send(&call).await {
                Ok(_) => return Ok(()),
                Err(failure) if failure.is(409) => return Ok(()),
                Err(failure) if failure.pushes_back() || failure.unsure => {
                    tracing::warn!("asking for a certificate failed: {failure}");
                }
                Err(failure) => return Err(refused(&failure)),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LOOK_MAX);
        }
    }
}

fn refused(failure: &Failure) -> IdentityError {
    match failure.code {
        Some(401) => IdentityError::Unauthorized,
        _ => IdentityError::Refused(failure.to_string()),
    }
}

fn pending_key(path: &Path) -> Result<KeyPair, IdentityError> {
    let kept = pair::read(path)?;
    if let Some(key) = kept.and_then(|pem| KeyPair::from_pem(&pem).ok()) {
        return Ok(key);
    }
    let key = KeyPair::generate().map_err(|error| IdentityError::Unusable {
        what: "a new key".to_owned(),
        why: error.to_string(),
    })?;
    pair::write(path, &key.serialize_pem())?;
    Ok(key)
}

/// The certificate, if there is one; an error if there will be none.
fn verdict(name: &str, request: &Value) -> Result<Option<String>, IdentityError> {
    let status = &request["status"];
    for (kind, verdict) in [("Denied", "was denied"), ("Failed", "failed")] {
        let conditions = status["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        if let Some(condition) = conditions.find(|condition| condition["type"] == kind) {
            let words = |key: &str| condition[key].as_str().unwrap_or_default();
            let message = match words("message") {
                "" => words("reason"),
                message => message,
            };
            return Err(IdentityError::TurnedDown {
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
    pem.map(Some).ok_or_else(|| IdentityError::Unusable {
        what: format!("the certificate of request {name}"),
        why: "it is no PEM".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_came_of_a_request() {
        let check = |status: Value, expected: Result<Option<&str>, &str>| {
            let found = verdict("r", &json!({ "status": status }));
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
    fn a_key_is_kept_until_there_is_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("client.pending.key");
        let first = pending_key(&path).unwrap().serialize_pem();
        assert_eq!(pending_key(&path).unwrap().serialize_pem(), first);
        std::fs::write(&path, "half a k").unwrap();
        assert_ne!(pending_key(&path).unwrap().serialize_pem(), first);
    }
}
