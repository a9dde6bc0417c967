//! Privilege escalation is refused on every path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_server::request::User;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use crate::authorization::{
    BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES, ask, binding, role, rule, user,
};
use crate::fixture::TestServer;

const GROUP: &str = "rbac.authorization.k8s.io";
const KINDS: [&str; 4] = [
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
];

/// A cluster in which mallory may write all roles and bindings, and read config maps.
async fn with_mallory() -> (TestServer, User) {
    let server = TestServer::new().await;
    let verbs = ["get", "list", "create", "update", "patch", "delete"];
    let rules = [
        rule(&verbs, GROUP, &KINDS),
        rule(&["get"], "", &["configmaps"]),
    ];
    server
        .post(CLUSTER_ROLES, &role("steward", &rules))
        .await
        .is(201);
    let bind = binding("steward", "ClusterRole/steward", "mallory");
    server.post(CLUSTER_BINDINGS, &bind).await.is(201);
    (server, user("mallory"))
}

fn secrets() -> Value {
    rule(&["get"], "", &["secrets"])
}

fn maps() -> Value {
    rule(&["get"], "", &["configmaps"])
}

#[tokio::test]
async fn a_role_holds_no_more_than_its_author() {
    let (server, mallory) = with_mallory().await;
    for path in [ROLES, CLUSTER_ROLES] {
        let create = format!("POST {path}");
        ask(&server, &mallory, &create, Some(&role("held", &[maps()])))
            .await
            .is(201);
        let more = role("more", &[maps(), secrets()]);
        let refused = ask(&server, &mallory, &create, Some(&more)).await.is(403);
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
        ask(&server, &mallory, &format!("PUT {held}"), Some(&grown))
            .await
            .is(403);
        let patch = json!({"rules": [maps(), secrets()]});
        ask(&server, &mallory, &format!("PATCH {held}"), Some(&patch))
            .await
            .is(403);
        // A PUT that would create is a create.
        ask(
            &server,
            &mallory,
            &format!("PUT {path}/new"),
            Some(&role("new", &[secrets()])),
        )
        .await
        .is(403);
        let dry = format!("POST {path}?dryRun=All");
        ask(&server, &mallory, &dry, Some(&more)).await.is(403);
        let all = role("all", &[rule(&["*"], "*", &["*"])]);
        ask(&server, &mallory, &create, Some(&all)).await.is(403);
    }
}

#[tokio::test]
async fn a_binding_gives_no_more_than_its_author_has() {
    let (server, mallory) = with_mallory().await;
    for (path, role) in [
        (CLUSTER_BINDINGS, "ClusterRole/cluster-admin"),
        (BINDINGS, "ClusterRole/cluster-admin"),
        (BINDINGS, "ClusterRole/edit"),
    ] {
        let own = binding("own", role, "mallory");
        let refused = ask(&server, &mallory, &format!("POST {path}"), Some(&own))
            .await
            .is(403);
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("is attempting to grant RBAC permissions not currently held"),
            "{message}"
        );
    }
    // A missing role could be created later with any rules.
    let lost = binding("lost", "ClusterRole/lost", "mallory");
    let refused = ask(&server, &mallory, &format!("POST {BINDINGS}"), Some(&lost))
        .await
        .is(404);
    assert_eq!(
        refused["message"],
        "clusterroles.rbac.authorization.k8s.io \"lost\" not found"
    );
    let lost = binding("lost", "Role/lost", "mallory");
    ask(&server, &mallory, &format!("POST {BINDINGS}"), Some(&lost))
        .await
        .is(404);
    // Subjects cannot be added to a binding of more, nor can its role be changed.
    let admin = format!("{CLUSTER_BINDINGS}/cluster-admin");
    let join = json!({"subjects": [{"kind": "User", "name": "mallory", "apiGroup": GROUP}]});
    ask(&server, &mallory, &format!("PATCH {admin}"), Some(&join))
        .await
        .is(403);
    let steward = format!("{CLUSTER_BINDINGS}/steward");
    let lift = json!({"roleRef": {"name": "cluster-admin"}});
    ask(&server, &mallory, &format!("PATCH {steward}"), Some(&lift))
        .await
        .is(403);
    // A user may grant own rights.
    let fair = binding("fair", "ClusterRole/steward", "trent");
    ask(
        &server,
        &mallory,
        &format!("POST {CLUSTER_BINDINGS}"),
        Some(&fair),
    )
    .await
    .is(201);
    // None of the attempts has granted anything.
    ask(&server, &mallory, "GET /api/v1/secrets", None)
        .await
        .is(403);
}

#[tokio::test]
async fn rights_in_one_namespace_are_none_in_another() {
    let server = TestServer::new().await;
    server
        .post(BINDINGS, &binding("b", "ClusterRole/admin", "nora"))
        .await
        .is(201);
    let nora = user("nora");
    let grant = binding("more", "ClusterRole/edit", "otto");
    ask(&server, &nora, &format!("POST {BINDINGS}"), Some(&grant))
        .await
        .is(201);
    let elsewhere = BINDINGS.replace("default", "kube-system");
    ask(&server, &nora, &format!("POST {elsewhere}"), Some(&grant))
        .await
        .is(403);
    ask(
        &server,
        &nora,
        &format!("POST {CLUSTER_BINDINGS}"),
        Some(&grant),
    )
    .await
    .is(403);
    let nodes = role("nodes", &[rule(&["get"], "", &["nodes"])]);
    ask(&server, &nora, &format!("POST {ROLES}"), Some(&nodes))
        .await
        .is(403);
}

#[tokio::test]
async fn aggregation_rules_need_cluster_admin() {
    let (server, mallory) = with_mallory().await;
    let words = "must have cluster-admin privileges to use the aggregationRule";
    let mut all = role("all", &[]);
    all["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {
        "kubernetes.io/bootstrapping": "rbac-defaults"}}]});
    let create = format!("POST {CLUSTER_ROLES}");
    let refused = ask(&server, &mallory, &create, Some(&all)).await.is(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with(words), "{message}");
    // A role with more rules cannot be labelled for an aggregated role, …
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let lead = json!({"metadata": {"labels": {label: "true"}}});
    let edit = format!("PATCH {CLUSTER_ROLES}/system:aggregate-to-edit");
    ask(&server, &mallory, &edit, Some(&lead)).await.is(403);
    // … nor created with them.
    let mut bait = role("bait", &[secrets()]);
    bait["metadata"]["labels"] = json!({label: "true"});
    ask(&server, &mallory, &create, Some(&bait)).await.is(403);
    // Removing the aggregation rule would keep the aggregated rules.
    let stop = json!({"aggregationRule": null, "rules": []});
    let refused = ask(
        &server,
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
async fn escalate_and_bind_rights_allow_it() {
    let (server, mallory) = with_mallory().await;
    let mut bind = rule(&["bind"], GROUP, &["clusterroles"]);
    bind["resourceNames"] = json!(["view", "later"]);
    server
        .post(CLUSTER_ROLES, &role("binder", &[bind]))
        .await
        .is(201);
    let to_mallory = binding("binder", "ClusterRole/binder", "mallory");
    server.post(CLUSTER_BINDINGS, &to_mallory).await.is(201);
    for (role, code) in [("view", 201), ("later", 201), ("edit", 403)] {
        let grant = binding(role, &format!("ClusterRole/{role}"), "trent");
        ask(&server, &mallory, &format!("POST {BINDINGS}"), Some(&grant))
            .await
            .is(code);
    }
    let escalate = role("escalator", &[rule(&["escalate"], GROUP, &["roles"])]);
    server.post(CLUSTER_ROLES, &escalate).await.is(201);
    let to_mallory = binding("escalator", "ClusterRole/escalator", "mallory");
    server.post(BINDINGS, &to_mallory).await.is(201);
    let more = role("more", &[secrets()]);
    ask(&server, &mallory, &format!("POST {ROLES}"), Some(&more))
        .await
        .is(201);
    ask(
        &server,
        &mallory,
        &format!("POST {CLUSTER_ROLES}"),
        Some(&more),
    )
    .await
    .is(403);
    let elsewhere = ROLES.replace("default", "kube-system");
    ask(&server, &mallory, &format!("POST {elsewhere}"), Some(&more))
        .await
        .is(403);
}

#[tokio::test]
async fn a_role_that_is_owned_may_be_collected() {
    let (server, mallory) = with_mallory().await;
    let mut more = role("more", &[secrets()]);
    more["metadata"]["finalizers"] = json!(["example.com/x"]);
    server.post(ROLES, &more).await.is(201);
    let path = format!("PATCH {ROLES}/more");
    let let_go = json!({"metadata": {"finalizers": null}});
    ask(&server, &mallory, &path, Some(&let_go)).await.is(200);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    ask(&server, &mallory, &path, Some(&label)).await.is(403);
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

/// Encodings of the subject that parsers may read differently.
#[tokio::test]
async fn a_signing_request_that_cannot_be_parsed_is_refused() {
    let server = TestServer::new().await;
    let masters = rcgen::string::BmpString::try_from("system:masters").unwrap();
    let strange = certificate("r", rcgen::DnValue::BmpString(masters));
    let refused = server.post(REQUESTS, &strange).await.is(403);
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
        server.post(REQUESTS, &two).await.is(403);
        two["spec"]["signerName"] = "example.com/signer".into();
        server.post(REQUESTS, &two).await.fails(422, "Invalid");
    }
}

#[tokio::test]
async fn no_client_certificate_names_system_masters() {
    let server = TestServer::new().await;
    let refused = server
        .post(REQUESTS, &certificate("r", "system:masters"))
        .await
        .is(403);
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    server
        .post(REQUESTS, &certificate("r", "friends"))
        .await
        .is(201);
}

#[tokio::test]
async fn approving_and_signing_need_the_right_for_the_signer() {
    let (server, mallory) = with_mallory().await;
    let group = "certificates.k8s.io";
    let resources = [
        "certificatesigningrequests",
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
    ];
    let verbs = ["create", "get", "update"];
    server
        .post(
            CLUSTER_ROLES,
            &role("asker", &[rule(&verbs, group, &resources)]),
        )
        .await
        .is(201);
    let bind = binding("asker", "ClusterRole/asker", "mallory");
    server.post(CLUSTER_BINDINGS, &bind).await.is(201);
    let asked = certificate("r", "friends");
    let mut made = ask(&server, &mallory, &format!("POST {REQUESTS}"), Some(&asked))
        .await
        .is(201);
    let condition = json!({"type": "Approved", "status": "True", "reason": "Me"});
    made["status"]["conditions"] = json!([condition]);
    let approve = format!("PUT {REQUESTS}/r/approval");
    let refused = ask(&server, &mallory, &approve, Some(&made)).await.is(403);
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not permitted to approve \
         requests with signerName \"kubernetes.io/kube-apiserver-client\""
    );
    let approver = "ClusterRole/system:certificates.k8s.io:kube-apiserver-client-approver";
    let bind = binding("approver", approver, "mallory");
    server.post(CLUSTER_BINDINGS, &bind).await.is(201);
    let mut approved = ask(&server, &mallory, &approve, Some(&made)).await.is(200);
    let failed = json!({"type": "Failed", "status": "True", "reason": "Me"});
    approved["status"]["conditions"] = json!([approved["status"]["conditions"][0], failed]);
    let sign = format!("PUT {REQUESTS}/r/status");
    let refused = ask(&server, &mallory, &sign, Some(&approved)).await.is(403);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("user not permitted to sign requests"),
        "{message}"
    );
    let mut signer = rule(&["sign"], group, &["signers"]);
    signer["resourceNames"] = json!(["kubernetes.io/*"]);
    server
        .post(CLUSTER_ROLES, &role("signer", &[signer]))
        .await
        .is(201);
    let bind = binding("signer", "ClusterRole/signer", "mallory");
    server.post(CLUSTER_BINDINGS, &bind).await.is(201);
    ask(&server, &mallory, &sign, Some(&approved)).await.is(200);
}
