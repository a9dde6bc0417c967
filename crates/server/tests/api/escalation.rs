//! Nobody gets more rights than they have, whichever way they try.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_server::request::User;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use crate::access::{
    BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES, ask, binding, role, rule, user,
};
use crate::kit::Kit;

const GROUP: &str = "rbac.authorization.k8s.io";
const KINDS: [&str; 4] = [
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
];

/// A cluster in which mallory may write all roles and bindings, and read config maps.
async fn with_mallory() -> (Kit, User) {
    let kit = Kit::new().await;
    let verbs = ["get", "list", "create", "update", "patch", "delete"];
    let rules = [
        rule(&verbs, GROUP, &KINDS),
        rule(&["get"], "", &["configmaps"]),
    ];
    kit.post(CLUSTER_ROLES, &role("steward", &rules))
        .await
        .is(201);
    let bind = binding("steward", "ClusterRole/steward", "mallory");
    kit.post(CLUSTER_BINDINGS, &bind).await.is(201);
    (kit, user("mallory"))
}

fn secrets() -> Value {
    rule(&["get"], "", &["secrets"])
}

fn maps() -> Value {
    rule(&["get"], "", &["configmaps"])
}

#[tokio::test]
async fn a_role_holds_no_more_than_its_author() {
    let (kit, mallory) = with_mallory().await;
    for path in [ROLES, CLUSTER_ROLES] {
        let create = format!("POST {path}");
        ask(&kit, &mallory, &create, Some(&role("held", &[maps()])))
            .await
            .is(201);
        let more = role("more", &[maps(), secrets()]);
        let refused = ask(&kit, &mallory, &create, Some(&more)).await.is(403);
        let plural = path.rsplit('/').next().unwrap();
        assert_eq!(
            refused["message"],
            format!(
                "{plural}.{GROUP} \"more\" is forbidden: user \"mallory\" (groups=[\"system:authenticated\"]) \
                 is attempting to grant RBAC permissions not currently held:\n\
                 {{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}}"
            )
        );
        let held = format!("{path}/held");
        let grown = role("held", &[secrets()]);
        ask(&kit, &mallory, &format!("PUT {held}"), Some(&grown))
            .await
            .is(403);
        let patch = json!({"rules": [maps(), secrets()]});
        ask(&kit, &mallory, &format!("PATCH {held}"), Some(&patch))
            .await
            .is(403);
        // A PUT that would create is a create.
        ask(
            &kit,
            &mallory,
            &format!("PUT {path}/new"),
            Some(&role("new", &[secrets()])),
        )
        .await
        .is(403);
        let dry = format!("POST {path}?dryRun=All");
        ask(&kit, &mallory, &dry, Some(&more)).await.is(403);
        let all = role("all", &[rule(&["*"], "*", &["*"])]);
        ask(&kit, &mallory, &create, Some(&all)).await.is(403);
    }
}

#[tokio::test]
async fn a_binding_gives_no_more_than_its_author_has() {
    let (kit, mallory) = with_mallory().await;
    for (path, role) in [
        (CLUSTER_BINDINGS, "ClusterRole/cluster-admin"),
        (BINDINGS, "ClusterRole/cluster-admin"),
        (BINDINGS, "ClusterRole/edit"),
    ] {
        let own = binding("own", role, "mallory");
        let refused = ask(&kit, &mallory, &format!("POST {path}"), Some(&own))
            .await
            .is(403);
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("is attempting to grant RBAC permissions not currently held"),
            "{message}"
        );
    }
    // A role that is not there may come to hold anything.
    let lost = binding("lost", "ClusterRole/lost", "mallory");
    let refused = ask(&kit, &mallory, &format!("POST {BINDINGS}"), Some(&lost))
        .await
        .is(404);
    assert_eq!(
        refused["message"],
        "clusterroles.rbac.authorization.k8s.io \"lost\" not found"
    );
    let lost = binding("lost", "Role/lost", "mallory");
    ask(&kit, &mallory, &format!("POST {BINDINGS}"), Some(&lost))
        .await
        .is(404);
    // Subjects cannot be added to a binding of more, nor can its role be changed.
    let admin = format!("{CLUSTER_BINDINGS}/cluster-admin");
    let join = json!({"subjects": [{"kind": "User", "name": "mallory", "apiGroup": GROUP}]});
    ask(&kit, &mallory, &format!("PATCH {admin}"), Some(&join))
        .await
        .is(403);
    let steward = format!("{CLUSTER_BINDINGS}/steward");
    let lift = json!({"roleRef": {"name": "cluster-admin"}});
    ask(&kit, &mallory, &format!("PATCH {steward}"), Some(&lift))
        .await
        .is(403);
    // What is held may be passed on.
    let fair = binding("fair", "ClusterRole/steward", "trent");
    ask(
        &kit,
        &mallory,
        &format!("POST {CLUSTER_BINDINGS}"),
        Some(&fair),
    )
    .await
    .is(201);
    // All the while, nothing was gained.
    ask(&kit, &mallory, "GET /api/v1/secrets", None)
        .await
        .is(403);
}

#[tokio::test]
async fn rights_in_one_namespace_are_none_in_another() {
    let kit = Kit::new().await;
    kit.post(BINDINGS, &binding("b", "ClusterRole/admin", "nora"))
        .await
        .is(201);
    let nora = user("nora");
    let grant = binding("more", "ClusterRole/edit", "otto");
    ask(&kit, &nora, &format!("POST {BINDINGS}"), Some(&grant))
        .await
        .is(201);
    let elsewhere = BINDINGS.replace("default", "kube-system");
    ask(&kit, &nora, &format!("POST {elsewhere}"), Some(&grant))
        .await
        .is(403);
    ask(
        &kit,
        &nora,
        &format!("POST {CLUSTER_BINDINGS}"),
        Some(&grant),
    )
    .await
    .is(403);
    let nodes = role("nodes", &[rule(&["get"], "", &["nodes"])]);
    ask(&kit, &nora, &format!("POST {ROLES}"), Some(&nodes))
        .await
        .is(403);
}

#[tokio::test]
async fn gathering_is_for_administrators() {
    let (kit, mallory) = with_mallory().await;
    let words = "must have cluster-admin privileges to use the aggregationRule";
    let mut all = role("all", &[]);
    all["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {
        "kubernetes.io/bootstrapping": "rbac-defaults"}}]});
    let create = format!("POST {CLUSTER_ROLES}");
    let refused = ask(&kit, &mallory, &create, Some(&all)).await.is(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with(words), "{message}");
    // Neither can a role that holds more be led into one that gathers, …
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let lead = json!({"metadata": {"labels": {label: "true"}}});
    let edit = format!("PATCH {CLUSTER_ROLES}/system:aggregate-to-edit");
    ask(&kit, &mallory, &edit, Some(&lead)).await.is(403);
    // … nor can one be made that holds more than its author.
    let mut bait = role("bait", &[secrets()]);
    bait["metadata"]["labels"] = json!({label: "true"});
    ask(&kit, &mallory, &create, Some(&bait)).await.is(403);
    // To stop a role from gathering would keep what it has.
    let stop = json!({"aggregationRule": null, "rules": []});
    let refused = ask(
        &kit,
        &mallory,
        &format!("PATCH {CLUSTER_ROLES}/view"),
        Some(&stop),
    )
    .await;
    let refused = refused.is(403);
    assert!(
        refused["message"].as_str().unwrap().ends_with(words),
        "{refused}"
    );
}

#[tokio::test]
async fn the_verbs_made_for_it_allow_it() {
    let (kit, mallory) = with_mallory().await;
    let mut bind = rule(&["bind"], GROUP, &["clusterroles"]);
    bind["resourceNames"] = json!(["view", "later"]);
    kit.post(CLUSTER_ROLES, &role("binder", &[bind]))
        .await
        .is(201);
    let to_mallory = binding("binder", "ClusterRole/binder", "mallory");
    kit.post(CLUSTER_BINDINGS, &to_mallory).await.is(201);
    for (role, code) in [("view", 201), ("later", 201), ("edit", 403)] {
        let grant = binding(role, &format!("ClusterRole/{role}"), "trent");
        ask(&kit, &mallory, &format!("POST {BINDINGS}"), Some(&grant))
            .await
            .is(code);
    }
    let escalate = role("escalator", &[rule(&["escalate"], GROUP, &["roles"])]);
    kit.post(CLUSTER_ROLES, &escalate).await.is(201);
    let to_mallory = binding("escalator", "ClusterRole/escalator", "mallory");
    kit.post(BINDINGS, &to_mallory).await.is(201);
    let more = role("more", &[secrets()]);
    ask(&kit, &mallory, &format!("POST {ROLES}"), Some(&more))
        .await
        .is(201);
    ask(
        &kit,
        &mallory,
        &format!("POST {CLUSTER_ROLES}"),
        Some(&more),
    )
    .await
    .is(403);
    let elsewhere = ROLES.replace("default", "kube-system");
    ask(&kit, &mallory, &format!("POST {elsewhere}"), Some(&more))
        .await
        .is(403);
}

#[tokio::test]
async fn a_role_that_is_owned_may_be_collected() {
    let (kit, mallory) = with_mallory().await;
    let mut more = role("more", &[secrets()]);
    more["metadata"]["finalizers"] = json!(["example.com/x"]);
    kit.post(ROLES, &more).await.is(201);
    let path = format!("PATCH {ROLES}/more");
    let let_go = json!({"metadata": {"finalizers": null}});
    ask(&kit, &mallory, &path, Some(&let_go)).await.is(200);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    ask(&kit, &mallory, &path, Some(&label)).await.is(403);
}

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request for a client certificate that names a group.
fn certificate(name: &str, group: impl Into<rcgen::DnValue>) -> Value {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, "mallory");
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({"metadata": {"name": name}, "spec": {
        "request": STANDARD.encode(request), "usages": ["client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client",
    }})
}

/// Tells in another way who is asked for: what one reader overlooks, another may find.
#[tokio::test]
async fn no_certificate_hides_whom_it_is_for() {
    let kit = Kit::new().await;
    let masters = rcgen::string::BmpString::try_from("system:masters").unwrap();
    let strange = certificate("r", rcgen::DnValue::BmpString(masters));
    let refused = kit.post(REQUESTS, &strange).await.is(403);
    let words = refused["message"].as_str().unwrap();
    assert!(
        words.ends_with("is forbidden: failed to parse CSR"),
        "{words}"
    );
    let pem = |group| {
        let request = certificate("r", group);
        STANDARD
            .decode(request["spec"]["request"].as_str().unwrap())
            .unwrap()
    };
    let (good, evil) = (pem("friends"), pem("system:masters"));
    for parts in [[&good[..], &evil[..]], [&b"x"[..], &good[..]]] {
        let mut two = certificate("r", "friends");
        two["spec"]["request"] = STANDARD.encode(parts.concat()).into();
        kit.post(REQUESTS, &two).await.is(403);
        two["spec"]["signerName"] = "example.com/signer".into();
        kit.post(REQUESTS, &two).await.fails(422, "Invalid");
    }
}

#[tokio::test]
async fn a_certificate_makes_nobody_a_master() {
    let kit = Kit::new().await;
    let refused = kit
        .post(REQUESTS, &certificate("r", "system:masters"))
        .await
        .is(403);
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    kit.post(REQUESTS, &certificate("r", "friends"))
        .await
        .is(201);
}

#[tokio::test]
async fn approving_and_signing_need_the_right_for_the_signer() {
    let (kit, mallory) = with_mallory().await;
    let group = "certificates.k8s.io";
    let resources = [
        "certificatesigningrequests",
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
    ];
    let verbs = ["create", "get", "update"];
    kit.post(
        CLUSTER_ROLES,
        &role("asker", &[rule(&verbs, group, &resources)]),
    )
    .await
    .is(201);
    let bind = binding("asker", "ClusterRole/asker", "mallory");
    kit.post(CLUSTER_BINDINGS, &bind).await.is(201);
    let asked = certificate("r", "friends");
    let mut made = ask(&kit, &mallory, &format!("POST {REQUESTS}"), Some(&asked))
        .await
        .is(201);
    let condition = json!({"type": "Approved", "status": "True", "reason": "Me"});
    made["status"]["conditions"] = json!([condition]);
    let approve = format!("PUT {REQUESTS}/r/approval");
    let refused = ask(&kit, &mallory, &approve, Some(&made)).await.is(403);
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not permitted to approve \
         requests with signerName \"kubernetes.io/kube-apiserver-client\""
    );
    let approver = "ClusterRole/system:certificates.k8s.io:kube-apiserver-client-approver";
    let bind = binding("approver", approver, "mallory");
    kit.post(CLUSTER_BINDINGS, &bind).await.is(201);
    let mut approved = ask(&kit, &mallory, &approve, Some(&made)).await.is(200);
    let failed = json!({"type": "Failed", "status": "True", "reason": "Me"});
    approved["status"]["conditions"] = json!([approved["status"]["conditions"][0], failed]);
    let sign = format!("PUT {REQUESTS}/r/status");
    let refused = ask(&kit, &mallory, &sign, Some(&approved)).await.is(403);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("user not permitted to sign requests"),
        "{message}"
    );
    let mut signer = rule(&["sign"], group, &["signers"]);
    signer["resourceNames"] = json!(["kubernetes.io/*"]);
    kit.post(CLUSTER_ROLES, &role("signer", &[signer]))
        .await
        .is(201);
    let bind = binding("signer", "ClusterRole/signer", "mallory");
    kit.post(CLUSTER_BINDINGS, &bind).await.is(201);
    ask(&kit, &mallory, &sign, Some(&approved)).await.is(200);
}
