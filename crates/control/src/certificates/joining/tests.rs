//! Joining against an API that stores nodes and secrets, and whose writes can fail.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kennel_client::fence::Fence;
use kennel_core::certificates::CertificateRequest;
use kennel_core::certificates::revocation::{self, secret_name};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const NODE: &str = "n1";
const USER: &str = "system:node:n1";

/// As in the `data` of a Secret.
fn encoded(text: &str) -> Value {
    json!(ByteString(text.as_bytes().to_vec()))
}

/// Objects by path, and the writes that fail: those whose path contains the text.
#[derive(Clone, Default)]
struct FakeApi {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    failing: Arc<Mutex<Option<String>>>,
}

impl FakeApi {
    fn writer(&self) -> Writer {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                // Others run between a request and its effect.
                tokio::task::yield_now().await;
                let (code, answer) = api.answer(&head.method, head.uri.path(), &body);
                let response = Response::builder().status(code);
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, Infallible>(response.body(body).unwrap())
            }
        });
        Writer::new(Client::new(service, "default"), Fence::open())
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
        let mut objects = self.objects.lock().unwrap();
        let failure = |code: u16| {
            (
                code,
                json!({"kind": "Status", "status": "Failure", "code": code, "message": "no",
                       "reason": if code == 404 { "NotFound" } else { "" }}),
            )
        };
        if *method == Method::GET {
            return objects
                .get(path)
                .map_or_else(|| failure(404), |found| (200, found.clone()));
        }
        let mut object: Value = serde_json::from_slice(body).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let path = if *method == Method::POST {
            format!("{path}/{name}")
        } else {
            path.to_owned()
        };
        let failing = self.failing.lock().unwrap();
        if failing.as_ref().is_some_and(|text| path.contains(text)) {
            return failure(403);
        }
        let stored = objects
            .get(&path)
            .map(|stored| &stored["metadata"]["resourceVersion"]);
        let is_stale = match stored {
            Some(version) => {
                *method == Method::POST || *version != object["metadata"]["resourceVersion"]
            }
            None => *method == Method::PUT,
        };
        if is_stale {
            return failure(409);
        }
        if let Value::Object(fields) = object["stringData"].take() {
            for (key, text) in fields {
                object["data"][key] = encoded(text.as_str().unwrap());
            }
        }
        object.as_object_mut().unwrap().remove("stringData");
        let version = stored
            .and_then(Value::as_str)
            .map_or(1, |text| text.parse::<u64>().unwrap() + 1);
        object["metadata"]["resourceVersion"] = version.to_string().into();
        objects.insert(path, object.clone());
        (200, object)
    }

    fn put(&self, path: String, object: Value) {
        self.objects.lock().unwrap().insert(path, object);
    }

    fn token(&self, id: &str, limits: &Value) {
        let name = format!("bootstrap-token-{id}");
        let object = json!({"metadata": {"name": name}, "stringData": limits});
        let (code, _) = self.answer(&Method::POST, SECRETS, object.to_string().as_bytes());
        assert_eq!(code, 200);
    }

    fn register(&self) {
        self.put(
            format!("/api/v1/nodes/{NODE}"),
            json!({"metadata": {"name": NODE}}),
        );
    }

    /// What the API server does when a Node is deleted.
    fn delete_node(&self) {
        self.revoke(clock::now());
        self.objects
            .lock()
            .unwrap()
            .remove(&format!("/api/v1/nodes/{NODE}"));
    }

    fn revoke(&self, now: Timestamp) {
        let before = revocation::cutoff(now).to_string();
        let object = json!({
            "metadata": {"name": secret_name(USER), "resourceVersion": "1"}, "type": revocation::SECRET_TYPE,
            "data": {revocation::USER: encoded(USER), revocation::BEFORE: encoded(&before)},
        });
        self.put(format!("{SECRETS}/{}", secret_name(USER)), object);
    }

    fn is_revoked(&self) -> bool {
        let path = format!("{SECRETS}/{}", secret_name(USER));
        self.objects.lock().unwrap().contains_key(&path)
    }

    fn fail(&self, writes_to: Option<&str>) {
        *self.failing.lock().unwrap() = writes_to.map(str::to_owned);
    }

    /// A request with this token and key.
    async fn ask(&self, token: &str, key: &str) -> Result<Outcome, Failure> {
        self.ask_as(USER, token, key).await
    }

    /// The same for any node.
    async fn ask_as(&self, user: &str, token: &str, key: &str) -> Result<Outcome, Failure> {
        let parsed = Parsed {
            asked: CertificateRequest {
                username: format!("{TOKEN_USER}{token}"),
                common_name: user.to_owned(),
                ..CertificateRequest::default()
            },
            subject: Vec::new(),
            key: key.as_bytes().to_vec(),
        };
        decide(&self.writer(), &parsed).await
    }

    #[track_caller]
    fn allowed(outcome: Result<Outcome, Failure>) {
        match outcome {
            Ok(Outcome::Allowed) => {}
            Ok(Outcome::Denied(why) | Outcome::Waits(why)) => panic!("not allowed: {why}"),
            Err(failure) => panic!("{failure}"),
        }
    }

    #[track_caller]
    fn denied(outcome: Result<Outcome, Failure>, words: &str) {
        match outcome {
            Ok(Outcome::Denied(why)) => assert!(why.contains(words), "{why}"),
            Ok(Outcome::Waits(why)) => panic!("waits: {why}"),
            Ok(Outcome::Allowed) => panic!("allowed"),
            Err(failure) => panic!("{failure}"),
        }
    }
}

#[tokio::test]
async fn a_machine_asks_again_until_it_has_its_certificate() {
    let api = FakeApi::default();
    api.token("aaaaaa", &json!({"uses": "1"}));
    FakeApi::allowed(api.ask("aaaaaa", "k").await);
    FakeApi::allowed(api.ask("aaaaaa", "k").await);
    // Once it has registered, it needs no other.
    api.register();
    FakeApi::denied(api.ask("aaaaaa", "k").await, "node n1 exists");
}

#[tokio::test]
async fn a_spent_token_does_not_bring_a_deleted_node_back() {
    let api = FakeApi::default();
    api.token("aaaaaa", &json!({"uses": "1"}));
    FakeApi::allowed(api.ask("aaaaaa", "k").await);
    api.register();
    api.delete_node();
    FakeApi::denied(api.ask("aaaaaa", "k").await, "revoked since");
    // A new one does, though it was used within the second of the revocation.
    api.token("bbbbbb", &json!({"uses": "1"}));
    FakeApi::allowed(api.ask("bbbbbb", "k").await);
    FakeApi::allowed(api.ask("bbbbbb", "k").await);
}

#[tokio::test]
async fn a_machine_that_was_replaced_does_not_come_back_with_its_spent_token() {
    let api = FakeApi::default();
    let replacing = json!({"uses": "1", "node": NODE, "replace": "true"});
    api.token("aaaaaa", &json!({"uses": "1"}));
    api.token("bbbbbb", &replacing);
    api.token("cccccc", &replacing);
    FakeApi::allowed(api.ask("aaaaaa", "old").await);
    api.register();
    FakeApi::allowed(api.ask("bbbbbb", "new").await);
    FakeApi::denied(api.ask("aaaaaa", "old").await, "node n1 exists");
    // The replacement may ask again, until it is replaced itself.
    FakeApi::allowed(api.ask("bbbbbb", "new").await);
    FakeApi::allowed(api.ask("cccccc", "newest").await);
    FakeApi::denied(api.ask("bbbbbb", "new").await, "revoked since");
    FakeApi::allowed(api.ask("cccccc", "newest").await);
}

#[tokio::test]
async fn no_replacement_gets_a_certificate_while_the_old_one_is_valid() {
    for failing in [&secret_name(USER), "bootstrap-token-bbbbbb"] {
        let api = FakeApi::default();
        api.token(
            "bbbbbb",
            &json!({"uses": "1", "node": NODE, "replace": "true"}),
        );
        api.register();
        api.fail(Some(failing));
        assert!(api.ask("bbbbbb", "new").await.is_err(), "{failing}");
        api.fail(None);
        FakeApi::allowed(api.ask("bbbbbb", "new").await);
        assert!(api.is_revoked(), "{failing}");
    }
}

#[tokio::test]
async fn two_tokens_do_not_make_the_same_new_node() {
    for limits in [json!({"uses": "1"}), json!({})] {
        let api = FakeApi::default();
        api.token("aaaaaa", &limits);
        api.token("bbbbbb", &limits);
        let (first, second) = tokio::join!(api.ask("aaaaaa", "a"), api.ask("bbbbbb", "b"));
        let allowed = |outcome: &Result<Outcome, Failure>| matches!(outcome, Ok(Outcome::Allowed));
        assert!(!(allowed(&first) && allowed(&second)), "{limits}");
        // Whoever came second, or lost a write, is denied when asked again.
        let again = [api.ask("aaaaaa", "a").await, api.ask("bbbbbb", "b").await];
        assert_eq!(
            again.iter().filter(|one| allowed(one)).count(),
            1,
            "{limits}"
        );
        // An administrator can give the name to the other one.
        let loser = if allowed(&again[0]) { "b" } else { "a" };
        api.token(
            "cccccc",
            &json!({"uses": "1", "node": NODE, "replace": "true"}),
        );
        FakeApi::allowed(api.ask("cccccc", loser).await);
        assert!(api.is_revoked(), "the certificate of the other ends");
    }
}

#[tokio::test]
async fn a_single_use_token_that_two_machines_use_at_once_makes_one_node() {
    let api = FakeApi::default();
    api.token("aaaaaa", &json!({"uses": "1"}));
    let ask = async |node: &str, key: &str| {
        let user = format!("{NODE_USER}{node}");
        api.ask_as(&user, "aaaaaa", key).await
    };
    let outcomes = tokio::join!(ask("n1", "a"), ask("n2", "b"));
    let (first, second) = match outcomes {
        (Ok(first), Ok(second)) => (first, second),
        (Err(failure), _) | (_, Err(failure)) => panic!("{failure}"),
    };
    // Both have read a token without uses; one of the two writes was too late.
    let (winner, loser) = match (&first, &second) {
        (Outcome::Allowed, Outcome::Waits(_)) => (("n1", "a"), ("n2", "b")),
        (Outcome::Waits(_), Outcome::Allowed) => (("n2", "b"), ("n1", "a")),
        _ => panic!("not one of the two"),
    };
    FakeApi::denied(ask(loser.0, loser.1).await, "used");
    FakeApi::allowed(ask(winner.0, winner.1).await);
    FakeApi::denied(ask("n3", "c").await, "used");
}

/// Whoever may have certificates of nodes approved without a token.
#[tokio::test]
async fn a_user_without_a_token_gets_no_certificate_of_an_existing_node() {
    let api = FakeApi::default();
    let ask = async || {
        let parsed = Parsed {
            asked: CertificateRequest {
                username: "provisioner".to_owned(),
                common_name: USER.to_owned(),
                ..CertificateRequest::default()
            },
            subject: Vec::new(),
            key: b"k".to_vec(),
        };
        decide(&api.writer(), &parsed).await
    };
    FakeApi::allowed(ask().await);
    api.register();
    match ask().await {
        Ok(Outcome::Waits(why)) => assert_eq!(why, "node n1 exists"),
        Ok(Outcome::Allowed | Outcome::Denied(_)) => panic!("it is an administrator's to approve"),
        Err(failure) => panic!("{failure}"),
    }
}
