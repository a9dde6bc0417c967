//! How a machine becomes a node: with a bootstrap token it asks for a certificate, gets it by rule, renews
//! it, and gets one to serve with; and requests that are refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_testkit::{Access, Deadline, Kennel, Reply, eventually};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";
/// The id of the token that every cluster here has.
const TOKEN: &str = "abcdef";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

struct Cluster {
    kennel: Kennel,
    admin: Access,
}

/// A cluster with a bootstrap token.
fn cluster() -> Cluster {
    let kennel = Kennel::up(env!("CARGO_BIN_EXE_kennel"), 0);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let cluster = Cluster { kennel, admin };
    cluster.create_token(TOKEN);
    cluster
}

/// A request for a certificate, with the key of the requester.
struct Wanted {
    signer: &'static str,
    usages: Value,
    user: &'static str,
    group: &'static str,
    names: Vec<SanType>,
    pair: KeyPair,
}

fn client_for(user: &'static str) -> Wanted {
    Wanted {
        signer: CLIENT,
        usages: json!(["digital signature", "client auth"]),
        user,
        group: "system:nodes",
        names: Vec::new(),
        pair: KeyPair::generate().unwrap(),
    }
}

fn serving_for(user: &'static str, names: &[&str]) -> Wanted {
    let name = |text: &&str| match text.parse() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName((*text).try_into().unwrap()),
    };
    Wanted {
        signer: SERVING,
        usages: json!(["digital signature", "server auth"]),
        names: names.iter().map(name).collect(),
        ..client_for(user)
    }
}

impl Wanted {
    fn request(&self, name: &str) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::OrganizationName, self.group);
        subject.push(DnType::CommonName, self.user);
        params.subject_alt_names.clone_from(&self.names);
        let pem = params.serialize_request(&self.pair).unwrap().pem().unwrap();
        let object = json!({"metadata": {"name": name}, "spec": {
            "request": STANDARD.encode(pem), "signerName": self.signer, "usages": self.usages}});
        object.to_string().into_bytes()
    }
}

impl Cluster {
    fn create_token(&self, id: &str) {
        let token = json!({
            "metadata": {"name": format!("bootstrap-token-{id}")},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {"token-id": id, "token-secret": "0123456789abcdef",
                           "usage-bootstrap-authentication": "true"}});
        made(
            &self
                .admin
                .ask("POST", SECRETS, token.to_string().as_bytes()),
        );
    }

    fn with_token(&self, name: &str, wanted: &Wanted) {
        self.with(TOKEN, name, wanted);
    }

    fn with(&self, token: &str, name: &str, wanted: &Wanted) {
        let stranger = Access::stranger(self.kennel.address(), &self.kennel.data_dir());
        let token = format!("Bearer {token}.0123456789abcdef");
        let header = [("Authorization", token.as_str())];
        made(&stranger.ask_with("POST", REQUESTS, &header, &wanted.request(name)));
    }

    fn request(&self, name: &str) -> Value {
        let path = format!("{REQUESTS}/{name}");
        self.admin.ask("GET", &path, b"").json()
    }

    /// The certificate that came of a request, as PEM.
    fn certificate(&self, name: &str) -> String {
        eventually(Deadline::seconds(30), || {
            let request = self.request(name);
            let found = request["status"]["certificate"].as_str();
            let found = found.map(|text| STANDARD.decode(text).unwrap());
            found
                .ok_or(request)
                .map(|pem| String::from_utf8(pem).unwrap())
        })
    }

    /// Access with this client certificate.
    fn holder(&self, name: &str, wanted: &Wanted) -> Access {
        let (address, data) = (self.kennel.address(), self.kennel.data_dir());
        let key = wanted.pair.serialize_pem();
        Access::showing(address, &data, &self.certificate(name), &key)
    }

    /// A node that has joined.
    fn node(&self, request: &str, user: &'static str) -> Access {
        let wanted = client_for(user);
        self.with_token(request, &wanted);
        self.holder(request, &wanted)
    }

    /// The condition of a request that is denied.
    fn denial(&self, name: &str) -> Value {
        eventually(Deadline::seconds(30), || {
            let request = self.request(name);
            let condition = request["status"]["conditions"][0].clone();
            let denied = condition["type"] == "Denied";
            denied.then_some(condition).ok_or(request)
        })
    }

    /// Sets limits of the token.
    fn limit(&self, limits: &Value) {
        let path = format!("{SECRETS}/bootstrap-token-{TOKEN}");
        let mut token = self.admin.ask("GET", &path, b"").json();
        token["stringData"] = limits.clone();
        let changed = self.admin.ask("PUT", &path, token.to_string().as_bytes());
        assert_eq!(changed.code, 200, "{}", changed.text());
    }

    /// Waits until the approver has seen these requests and left them alone.
    fn left_alone(&self, names: &[&str]) {
        for name in names {
            let words = format!("certificate request {name} is not approved");
            eventually(Deadline::seconds(30), || {
                let log = self.kennel.log();
                log.contains(&words).then_some(()).ok_or(log)
            });
            let request = self.request(name);
            assert_eq!(request["status"], json!({}), "{name}");
        }
    }
}

#[track_caller]
fn made(reply: &Reply) {
    assert_eq!(reply.code, 201, "{}", reply.text());
}

fn who(access: &Access) -> Value {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    access.ask("POST", path, b"{}").json()["status"]["userInfo"].clone()
}

#[test]
fn a_machine_with_a_token_becomes_a_node_and_stays_one() {
    let cluster = cluster();
    let node = cluster.node("join", "system:node:n1");
    let info = who(&node);
    assert_eq!(info["username"], "system:node:n1");
    assert_eq!(
        info["groups"],
        json!(["system:nodes", "system:authenticated"])
    );
    let conditions = cluster.request("join")["status"]["conditions"].clone();
    assert_eq!(conditions[0]["reason"], "AutoApproved");
    let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
    assert_eq!(conditions[0]["message"], message);
    // It renews its certificate with the one that it has.
    let again = client_for("system:node:n1");
    made(&node.ask("POST", REQUESTS, &again.request("renew")));
    let renewed = cluster.holder("renew", &again);
    assert_eq!(who(&renewed)["username"], "system:node:n1");
    let message = "Auto approving self kubelet client certificate after SubjectAccessReview.";
    let conditions = cluster.request("renew")["status"]["conditions"].clone();
    assert_eq!(conditions[0]["message"], message);
    // And one to serve with, as soon as it has said where it is.
    let serving = serving_for("system:node:n1", &["n1", "127.0.0.1"]);
    made(&renewed.ask("POST", REQUESTS, &serving.request("serve")));
    let object = json!({"metadata": {"name": "n1"}, "status": {"addresses": [
        {"type": "InternalIP", "address": "127.0.0.1"}, {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "Hostname", "address": "n1"}]}});
    let body = object.to_string();
    made(&renewed.ask("POST", "/api/v1/nodes", body.as_bytes()));
    assert!(
        cluster
            .certificate("serve")
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    // Not for an address that it only claims, until an administrator confirms it.
    let elsewhere = serving_for("system:node:n1", &["n1", "10.0.0.1"]);
    made(&renewed.ask("POST", REQUESTS, &elsewhere.request("elsewhere")));
    cluster.left_alone(&["elsewhere"]);
    let log = cluster.kennel.log();
    assert!(
        log.contains("has not shown that 10.0.0.1 is its own"),
        "{log}"
    );
    let mut node = cluster.admin.ask("GET", "/api/v1/nodes/n1", b"").json();
    node["metadata"]["annotations"]["kennel.dev/confirmed-addresses"] = "10.0.0.1".into();
    let body = node.to_string();
    let confirmed = cluster
        .admin
        .ask("PUT", "/api/v1/nodes/n1", body.as_bytes());
    assert_eq!(confirmed.code, 200, "{}", confirmed.text());
    cluster.certificate("elsewhere");
}

#[test]
fn a_token_becomes_no_node_that_exists() {
    let cluster = cluster();
    let node = cluster.node("join", "system:node:n1");
    made(&node.ask("POST", "/api/v1/nodes", br#"{"metadata": {"name": "n1"}}"#));
    cluster.with_token("again", &client_for("system:node:n1"));
    let denied = cluster.denial("again");
    assert_eq!(denied["reason"], "TokenNotAllowed");
    let message = denied["message"].as_str().unwrap();
    assert!(message.starts_with("node n1 exists"), "{message}");
    // The node itself may renew its certificate, and a token may make another node.
    let again = client_for("system:node:n1");
    made(&node.ask("POST", REQUESTS, &again.request("renew")));
    cluster.certificate("renew");
    cluster.node("another", "system:node:n2");
    // A token for that purpose replaces it, once, and ends the certificates of the other machine.
    cluster.limit(&json!({"node": "n1", "replace": "true", "uses": "1"}));
    let replacing = client_for("system:node:n1");
    cluster.with_token("replace", &replacing);
    let replacement = cluster.holder("replace", &replacing);
    assert_eq!(who(&replacement)["username"], "system:node:n1");
    let refused = node.ask("GET", "/api/v1/nodes/n1", b"");
    assert_eq!(refused.code, 401, "{}", refused.text());
    cluster.with_token("twice", &client_for("system:node:n1"));
    cluster.denial("twice");
    assert_eq!(who(&replacement)["username"], "system:node:n1");
    cluster.with_token("other", &client_for("system:node:n3"));
    let denied = cluster.denial("other");
    assert_eq!(denied["message"], "the token is for node n1 only");
}

#[test]
fn a_spent_token_does_not_bring_its_machine_back() {
    let cluster = cluster();
    cluster.limit(&json!({"uses": "1"}));
    let own = client_for("system:node:n1");
    cluster.with_token("join", &own);
    let node = cluster.holder("join", &own);
    made(&node.ask("POST", "/api/v1/nodes", br#"{"metadata": {"name": "n1"}}"#));
    // Not to the name that other hardware has now, and not to its own when the Node was deleted.
    cluster.with_token("while-it-exists", &own);
    let denied = cluster.denial("while-it-exists");
    let message = denied["message"].as_str().unwrap();
    assert!(message.starts_with("node n1 exists"), "{message}");
    let deleted = cluster.admin.ask("DELETE", "/api/v1/nodes/n1", b"");
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    cluster.with_token("after-its-deletion", &own);
    let denied = cluster.denial("after-its-deletion");
    let message = denied["message"].as_str().unwrap();
    assert!(message.contains("were revoked since"), "{message}");
    // A new token does, with the same key or another.
    cluster.create_token("bcdefg");
    cluster.with("bcdefg", "new-token", &own);
    let node = cluster.holder("new-token", &own);
    assert_eq!(who(&node)["username"], "system:node:n1");
}

#[test]
fn two_tokens_at_once_do_not_make_the_same_node() {
    let cluster = cluster();
    cluster.create_token("bcdefg");
    let machines = [
        (TOKEN, "first", client_for("system:node:n1")),
        ("bcdefg", "second", client_for("system:node:n1")),
    ];
    std::thread::scope(|scope| {
        for (token, name, wanted) in &machines {
            scope.spawn(|| cluster.with(token, name, wanted));
        }
    });
    let mut decided: Vec<Value> = machines
        .iter()
        .map(|(_, name, _)| {
            eventually(Deadline::seconds(60), || {
                let condition = cluster.request(name)["status"]["conditions"][0].clone();
                condition.is_object().then_some(condition).ok_or(*name)
            })
        })
        .collect();
    decided.sort_by_key(|condition| condition["type"].to_string());
    assert_eq!(decided[0]["type"], "Approved", "{decided:?}");
    assert_eq!(decided[1]["type"], "Denied", "{decided:?}");
    let message = decided[1]["message"].as_str().unwrap();
    assert!(
        message.starts_with("another machine has just got"),
        "{message}"
    );
}

#[test]
fn the_uses_of_a_token_are_counted_when_they_come_at_once() {
    let cluster = cluster();
    cluster.limit(&json!({"uses": "3"}));
    let names: Vec<(String, Wanted)> = (0..8)
        .map(|number| {
            let user: &'static str = Box::leak(format!("system:node:m{number}").into_boxed_str());
            (format!("join-{number}"), client_for(user))
        })
        .collect();
    std::thread::scope(|scope| {
        for (name, wanted) in &names {
            scope.spawn(|| cluster.with_token(name, wanted));
        }
    });
    let decided = eventually(Deadline::seconds(60), || {
        let kinds = names.iter().map(|(name, _)| {
            let request = cluster.request(name);
            request["status"]["conditions"][0]["type"]
                .as_str()
                .map(str::to_owned)
        });
        kinds
            .collect::<Option<Vec<String>>>()
            .ok_or("not all are decided")
    });
    let approved = decided.iter().filter(|kind| *kind == "Approved").count();
    assert_eq!(approved, 3, "{decided:?}");
}

#[test]
fn nobody_gets_more_than_is_theirs() {
    let cluster = cluster();
    let node = cluster.node("join", "system:node:n1");
    let body = json!({"metadata": {"name": "n1"}, "status": {"addresses": [
        {"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": "n1"}]}});
    made(&node.ask("POST", "/api/v1/nodes", body.to_string().as_bytes()));
    let names = |names: &[&str]| serving_for("system:node:n1", names).names;
    let with_token = [
        (
            "master",
            Wanted {
                group: "system:masters",
                ..client_for("system:node:n2")
            },
        ),
        ("nobodys", client_for("alice")),
        (
            "named",
            Wanted {
                names: names(&["n2"]),
                ..client_for("system:node:n2")
            },
        ),
        (
            "server",
            Wanted {
                usages: json!(["digital signature", "client auth", "server auth"]),
                ..client_for("system:node:n2")
            },
        ),
        ("serving-unborn", serving_for("system:node:n2", &["n2"])),
    ];
    for (name, wanted) in &with_token {
        cluster.with_token(name, wanted);
    }
    let by_node = [
        (
            "serving-elsewhere",
            serving_for("system:node:n1", &["n1", "10.0.0.2"]),
        ),
        (
            "serving-api",
            serving_for("system:node:n1", &["kubernetes.default.svc"]),
        ),
    ];
    for (name, wanted) in &by_node {
        made(&node.ask("POST", REQUESTS, &wanted.request(name)));
    }
    // For another node, it cannot even ask.
    for wanted in [
        client_for("system:node:n2"),
        serving_for("system:node:n2", &["n2"]),
    ] {
        let refused = node.ask("POST", REQUESTS, &wanted.request("another"));
        assert_eq!(refused.code, 403, "{}", refused.text());
    }
    let all = with_token.iter().chain(&by_node);
    let all: Vec<&str> = all.map(|(name, _)| *name).collect();
    cluster.left_alone(&all);
}

#[test]
fn what_an_administrator_approves_against_the_signers_rules_fails() {
    let cluster = cluster();
    let wanted = Wanted {
        group: "system:masters",
        ..client_for("system:node:n2")
    };
    cluster.with_token("master", &wanted);
    let mut request = cluster.request("master");
    request["status"]["conditions"] = json!([{"type": "Approved", "status": "True",
        "reason": "KubectlApprove", "message": "This CSR was approved by kubectl certificate approve."}]);
    let path = format!("{REQUESTS}/master/approval");
    let body = request.to_string();
    assert_eq!(cluster.admin.ask("PUT", &path, body.as_bytes()).code, 200);
    let failed = eventually(Deadline::seconds(30), || {
        let request = cluster.request("master");
        let condition = request["status"]["conditions"][1].clone();
        condition.is_object().then_some(condition).ok_or(request)
    });
    assert_eq!(failed["type"], "Failed");
    assert_eq!(failed["reason"], "SignerValidationFailure");
    assert_eq!(
        failed["message"],
        "subject organization is not system:nodes"
    );
    assert!(cluster.request("master")["status"]["certificate"].is_null());
}
