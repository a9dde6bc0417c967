//! Invalid tokens: whatever is wrong with them, all get the same 401.

use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::unauthorized_clients::fixture::{SECRETS, Target, known_as, unauthorized};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const ACCOUNT: &str = "system:serviceaccount:default:default";

#[test]
fn no_credentials() {
    let target = Target::new();
    for closed in [SECRETS, "/api", "/metrics", "/openid/v1/jwks", "/nothing"] {
        unauthorized(&target.stranger().ask("GET", closed, b""), closed);
    }
    for open in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(target.stranger().ask("GET", open, b"").code, 200, "{open}");
    }
}

#[test]
fn tokens_of_nobody() {
    let target = Target::new();
    for token in ["", "x", "a.b.c", "abcdef.0123456789abcdef", "Bearer"] {
        unauthorized(&target.with_token(token), token);
    }
    for value in ["Basic cm9vdDpyb290", "Bearer", "", "Negotiate x", "\u{fc}"] {
        let headers = [("Authorization", value)];
        let reply = target.stranger().ask_with("GET", SECRETS, &headers, b"");
        unauthorized(&reply, value);
    }
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A valid token taken apart, and the key that signed it.
struct ValidToken {
    token: String,
    header: Value,
    claims: Value,
    key: KeyPair,
}

impl ValidToken {
    fn of(target: &Target) -> Self {
        let token = target.token("default", &json!({}));
        let parts: Vec<&str> = token.split('.').collect();
        Self {
            header: decoded(parts[0]),
            claims: decoded(parts[1]),
            key: KeyPair::from_pem(&target.pki("service-account.key")).unwrap(),
            token,
        }
    }

    fn key_id(&self) -> String {
        self.header["kid"].as_str().unwrap().to_owned()
    }

    /// The valid claims with a change, signed with a key under a key id.
    fn signed(&self, key: &KeyPair, key_id: Option<String>, change: impl Fn(&mut Value)) -> String {
        let mut claims = self.claims.clone();
        change(&mut claims);
        let mut header = Header::new(Algorithm::ES256);
        header.kid = key_id;
        let key = EncodingKey::from_ec_der(&key.serialize_der());
        jsonwebtoken::encode(&header, &claims, &key).unwrap()
    }

    /// The same with the server's own key: a change that the server itself would never make.
    fn resigned(&self, change: impl Fn(&mut Value)) -> String {
        self.signed(&self.key, Some(self.key_id()), change)
    }
}

#[test]
fn tampered_tokens() {
    let target = Target::new();
    let valid_token = ValidToken::of(&target);
    known_as(&target.with_token(&valid_token.token), ACCOUNT);
    let [header, claims, signature] = valid_token.token.split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts");
    };
    let mut other = valid_token.claims.clone();
    other["kubernetes.io"]["namespace"] = "kube-system".into();
    let token = format!("{header}.{}.{signature}", encoded(&other));
    unauthorized(&target.with_token(&token), "other claims");
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    for at in [0, 31, 63] {
        bytes[at] ^= 1;
        let token = format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(&bytes));
        unauthorized(&target.with_token(&token), "a changed signature");
        bytes[at] ^= 1;
    }
    let zeros = URL_SAFE_NO_PAD.encode([0; 64]);
    for signature in ["", "AA", &zeros] {
        let token = format!("{header}.{claims}.{signature}");
        unauthorized(&target.with_token(&token), "no signature");
    }
    let token = format!("{}.{signature}", valid_token.token);
    unauthorized(&target.with_token(&token), "four parts");
}

#[test]
fn tokens_that_choose_how_they_are_checked() {
    let target = Target::new();
    let valid_token = ValidToken::of(&target);
    let claims = encoded(&valid_token.claims);
    let id = valid_token.key_id();
    for none in ["none", "None", "NONE", ""] {
        let header = encoded(&json!({"alg": none, "typ": "JWT", "kid": id}));
        let token = format!("{header}.{claims}.");
        unauthorized(&target.with_token(&token), "alg none");
    }
    // What everybody may know must not do as a secret.
    let public = [
        valid_token.key.public_key_pem().into_bytes(),
        valid_token.key.public_key_raw().to_vec(),
    ];
    for secret in public {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(id.clone());
        let key = EncodingKey::from_secret(&secret);
        let token = jsonwebtoken::encode(&header, &valid_token.claims, &key).unwrap();
        unauthorized(&target.with_token(&token), "HS256 with the public key");
    }
}

#[test]
fn tokens_of_other_keys_and_issuers() {
    let target = Target::new();
    let valid_token = ValidToken::of(&target);
    let good = valid_token.resigned(|_| {});
    known_as(&target.with_token(&good), ACCOUNT);
    let own = KeyPair::generate().unwrap();
    let token = valid_token.signed(&own, Some(valid_token.key_id()), |_| {});
    unauthorized(&target.with_token(&token), "another key");
    let token = valid_token.signed(&valid_token.key, None, |_| {});
    unauthorized(&target.with_token(&token), "no key id");
    let token = valid_token.signed(&valid_token.key, Some("../ca".into()), |_| {});
    unauthorized(&target.with_token(&token), "another key id");
    let token = valid_token.resigned(|claims| claims["iss"] = "https://elsewhere".into());
    unauthorized(&target.with_token(&token), "another issuer");
    let token = valid_token.resigned(|claims| claims["iss"] = Value::Null);
    unauthorized(&target.with_token(&token), "no issuer");
}

#[test]
fn tokens_at_the_wrong_time_or_for_others() {
    let target = Target::new();
    let valid_token = ValidToken::of(&target);
    let now = valid_token.claims["iat"].as_i64().unwrap();
    let token = valid_token.resigned(|claims| claims["exp"] = (now - 120).into());
    unauthorized(&target.with_token(&token), "expired");
    let token = valid_token.resigned(|claims| claims["exp"] = Value::Null);
    unauthorized(&target.with_token(&token), "without an end");
    let token = valid_token.resigned(|claims| claims["nbf"] = (now + 600).into());
    unauthorized(&target.with_token(&token), "not yet valid");
    let token = target.token("default", &json!({"audiences": ["vault"]}));
    unauthorized(&target.with_token(&token), "another audience");
}

#[test]
fn tokens_of_what_is_gone() {
    let target = Target::new();
    let account = json!({"metadata": {"name": "a"}});
    target.create(ACCOUNTS, &account);
    let token = target.token("a", &json!({}));
    known_as(
        &target.with_token(&token),
        "system:serviceaccount:default:a",
    );
    target.delete(&format!("{ACCOUNTS}/a"));
    unauthorized(&target.with_token(&token), "a deleted account");
    target.create(ACCOUNTS, &account);
    unauthorized(&target.with_token(&token), "an account made anew");
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    target.create(pods, &pod);
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}});
    let token = target.token("default", &bound);
    known_as(&target.with_token(&token), ACCOUNT);
    target.delete(&format!("{pods}/p"));
    unauthorized(&target.with_token(&token), "a deleted pod");
    target.create(pods, &pod);
    unauthorized(&target.with_token(&token), "a pod made anew");
}

#[test]
fn bootstrap_tokens() {
    let target = Target::new();
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let secret = |id: &str, expiration: &str| {
        json!({
            "metadata": {"name": format!("bootstrap-token-{id}")},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": id, "token-secret": "0123456789abcdef", "expiration": expiration,
                "usage-bootstrap-authentication": "true",
            },
        })
    };
    target.create(secrets, &secret("abcdef", "2999-01-01T00:00:00Z"));
    target.create(secrets, &secret("expire", "2020-01-01T00:00:00Z"));
    let good = target.with_token("abcdef.0123456789abcdef");
    known_as(&good, "system:bootstrap:abcdef");
    for bad in [
        "abcdef.0123456789abcdee",
        "abcdef.",
        "nobody.0123456789abcdef",
        "expire.0123456789abcdef",
    ] {
        unauthorized(&target.with_token(bad), bad);
    }
}

#[test]
fn static_tokens_come_and_go_with_their_file() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("tokens.csv");
    std::fs::write(&file, "first-token,carol,7,\"wardens,keepers\"\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let target = Target::started(&["server", "--token-file", file.to_str().unwrap()]);
    let careless = "the token file is readable by all users of this machine";
    assert!(!target.kennel.log().contains(careless));
    known_as(&target.with_token("first-token"), "carol");
    for bad in ["first-toke", "first-token1", "First-token", "carol"] {
        unauthorized(&target.with_token(bad), bad);
    }
    std::fs::write(&file, "second-token,carol,7\n").unwrap();
    let last = kennel_testkit::eventually(kennel_testkit::Deadline::seconds(20), || {
        let reply = target.with_token("first-token");
        if reply.code == 403 {
            return Err("still known");
        }
        Ok(reply)
    });
    unauthorized(&last, "taken out of the file");
    known_as(&target.with_token("second-token"), "carol");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let kennel = target.kennel.restart();
    assert!(kennel.log().contains(careless), "{}", kennel.log());
}

#[test]
fn an_invalid_token_file_is_refused() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("tokens.csv");
    std::fs::write(&file, "a,b,c\nd,e\n").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_kennel"))
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path().join("data"))
        .arg("--token-file")
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("line 2") && said.contains("3 columns"),
        "{said}"
    );
}

#[test]
fn retired_keys_verify_and_do_not_sign() {
    let target = Target::new();
    let valid_token = ValidToken::of(&target);
    let Target { kennel, .. } = target;
    // As if the server had been started with a limit of no days: the file is as old as can be.
    let path = kennel.data_dir().join("pki/service-account.key");
    let file = std::fs::File::options().append(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let kennel = kennel.restart();
    let admin = kennel_testkit::Access::admin(kennel.address(), &kennel.data_dir());
    let target = Target { kennel, admin };
    known_as(&target.with_token(&valid_token.token), ACCOUNT);
    let renewed = ValidToken::of(&target);
    assert_ne!(renewed.key_id(), valid_token.key_id());
    known_as(&target.with_token(&renewed.token), ACCOUNT);
    let keys = target.admin.ask("GET", "/openid/v1/jwks", b"").json();
    let ids = keys["keys"].as_array().unwrap().iter();
    let ids: Vec<&str> = ids.map(|key| key["kid"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{keys}");
    assert!(ids.contains(&&*valid_token.key_id()) && ids.contains(&&*renewed.key_id()));
}
