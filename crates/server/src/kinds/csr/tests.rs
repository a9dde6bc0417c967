//! Tables of certificate signing requests.

use rcgen::{CertificateParams, KeyPair};

use super::super::testing::{check, check_create, created, updated};
use super::*;

fn request() -> String {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(Vec::new()).unwrap();
    STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap())
}

fn csr(extra: &Value) -> Value {
    let mut object = json!({"spec": {"request": request(), "usages": ["client auth"],
        "signerName": "example.com/mine"}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

fn with_conditions(object: &Value, conditions: Value) -> Value {
    let mut object = object.clone();
    object["status"]["conditions"] = conditions;
    object
}

#[test]
fn the_asker_does_not_say_who_asks() {
    let mut object = created(
        &CertificateSigningRequest,
        &csr(&json!({"username": "root", "groups": ["system:masters"]})),
    );
    assert_eq!(object["spec"].get("username"), None);
    assert_eq!(object["spec"].get("groups"), None);
    let jane = User {
        name: "jane".to_owned(),
        uid: "u-1".to_owned(),
        groups: vec!["devs".to_owned()],
        extra: [("pod".to_owned(), vec!["p".to_owned()])].into(),
    };
    stamp_requester(&mut object, &jane);
    assert_eq!(object["spec"]["username"], "jane");
    assert_eq!(object["spec"]["uid"], "u-1");
    assert_eq!(object["spec"]["groups"], json!(["devs"]));
    assert_eq!(object["spec"]["extra"], json!({"pod": ["p"]}));
}

#[test]
fn requests_are_judged() {
    let strategy = &CertificateSigningRequest;
    check_create(strategy, &csr(&json!({})), &[]);
    check_create(
        strategy,
        &csr(&json!({"request": "aGk=", "usages": [], "expirationSeconds": 599})),
        &[
            "spec.request: Invalid value: \"aGk=\": PEM block type must be CERTIFICATE REQUEST",
            "spec.usages: Required value",
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than \
             600 seconds (10 minutes)",
        ],
    );
    check_create(
        strategy,
        &csr(&json!({"usages": ["signing", "signing"]})),
        &["spec.usages[1]: Duplicate value: \"signing\""],
    );
    let wrong = strategy.validate_create(&csr(&json!({"usages": ["flying"]})));
    assert!(wrong[0].to_string().starts_with(
        "spec.usages[0]: Unsupported value: \"flying\": \
        supported values: \"any\", \"cert sign\", \"client auth\""
    ));
}

#[test]
fn signer_names() {
    for (name, expected) in [
        ("", "spec.signerName: Required value"),
        (
            "mine",
            "spec.signerName: Invalid value: \"mine\": must be a fully qualified domain and path \
             of the form 'example.com/signer-name'",
        ),
        (
            "com/mine",
            "spec.signerName: Invalid value: \"com\": should be a domain with at least two \
             segments separated by dots",
        ),
        (
            "kubernetes.io/legacy-unknown",
            "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy \
             signerName is not allowed via this API version",
        ),
    ] {
        let object = csr(&json!({"signerName": name}));
        check_create(&CertificateSigningRequest, &object, &[expected]);
    }
}

#[test]
fn only_approvers_decide() {
    let old = created(&CertificateSigningRequest, &csr(&json!({})));
    let approved = json!([{"type": "Approved", "status": "True"}]);
    let new = with_conditions(&old, approved);
    check(&validate_approval_update(&new, &old), &[]);
    check(
        &CertificateSigningRequest.validate_status_update(&new, &old),
        &["status.conditions: Forbidden: updates may not add a condition of type \"Approved\""],
    );
    check(
        &validate_approval_update(&old, &new),
        &["status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""],
    );
    assert!(is_approved(&new) && !is_approved(&old));
    // A plain write cannot touch spec or status.
    let plain = updated(
        &CertificateSigningRequest,
        &json!({"spec": {}, "status": {}}),
        &new,
    );
    assert_eq!(plain, new);
}

#[test]
fn conditions_make_sense() {
    let old = created(&CertificateSigningRequest, &csr(&json!({})));
    let new = with_conditions(
        &old,
        json!([
            {"type": "Approved", "status": "False"},
            {"type": "Denied", "status": "True"},
            {"type": "Denied"},
        ]),
    );
    check(
        &validate_approval_update(&new, &old),
        &[
            "status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\"",
            "status.conditions[1].type: Invalid value: \"Denied\": Approved and Denied conditions \
             are mutually exclusive",
            "status.conditions[2].status: Required value",
            "status.conditions[2].type: Invalid value: \"Denied\": Approved and Denied conditions \
             are mutually exclusive",
            "status.conditions[2].type: Duplicate value: \"Denied\"",
        ],
    );
}

#[test]
fn only_signers_add_the_certificate_and_only_once() {
    let pem = |kind: &str| {
        STANDARD.encode(format!(
            "-----BEGIN {kind}-----\naGk=\n-----END {kind}-----\n"
        ))
    };
    let old = created(&CertificateSigningRequest, &csr(&json!({})));
    let mut new = old.clone();
    new["status"]["certificate"] = json!(pem("CERTIFICATE"));
    let strategy = &CertificateSigningRequest;
    check(&strategy.validate_status_update(&new, &old), &[]);
    check(
        &validate_approval_update(&new, &old),
        &["status.certificate: Forbidden: updates may not set certificate content"],
    );
    let mut other = old.clone();
    other["status"]["certificate"] = json!(pem("KEY"));
    check(
        &strategy.validate_status_update(&other, &new),
        &[
            "status.certificate: Forbidden: updates may not modify existing certificate content",
            "status.certificate: Invalid value: \"<certificate data>\": only CERTIFICATE PEM \
             blocks are allowed, found \"KEY\"",
        ],
    );
    prepare_approval_update(&mut other, &new);
    assert_eq!(other["status"]["certificate"], new["status"]["certificate"]);
}

#[test]
fn conditions_get_their_times() {
    let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": "t0",
        "lastUpdateTime": "t0"});
    let old = json!({"status": {"conditions": [condition]}});
    let mut new = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True"}, {"type": "Approved", "status": "True"}]}});
    stamp_conditions(&mut new, &old, "t1");
    assert_eq!(
        new["status"]["conditions"],
        json!([
            {"type": "Ready", "status": "True", "lastUpdateTime": "t1", "lastTransitionTime": "t0"},
            {"type": "Approved", "status": "True", "lastUpdateTime": "t1",
                "lastTransitionTime": "t1"},
        ])
    );
}
