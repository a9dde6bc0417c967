//! Admission: service accounts, priorities, tolerations, cluster IPs.

use serde_json::{Value, json};

use crate::fixture::{PODS, TestServer, names, pod, version};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const TOKEN_MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

#[tokio::test]
async fn a_pod_gets_its_account_and_the_accounts_token() {
    let server = TestServer::new().await;
    let made = server.pod("p", "").await;
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let volume = &spec["volumes"][0];
    let name = volume["name"].as_str().unwrap();
    assert!(
        name.starts_with("kube-api-access-") && name.len() == 21,
        "{name}"
    );
    let sources = &volume["projected"]["sources"];
    assert_eq!(sources[0]["serviceAccountToken"]["expirationSeconds"], 3607);
    assert_eq!(sources[1]["configMap"]["name"], "kube-root-ca.crt");
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_MOUNT});
    assert_eq!(spec["containers"][0]["volumeMounts"], json!([mount]));
}

#[tokio::test]
async fn no_token_is_mounted_if_automount_is_off() {
    let server = TestServer::new().await;
    let mut off = pod("off");
    off["spec"]["automountServiceAccountToken"] = false.into();
    let mut own = pod("own");
    own["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": TOKEN_MOUNT}]);
    own["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    let account = json!({
        "metadata": {"name": "quiet"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "pull"}],
    });
    server
        .post("/api/v1/namespaces/default/serviceaccounts", &account)
        .await
        .is(201);
    let mut quiet = pod("quiet");
    quiet["spec"]["serviceAccountName"] = "quiet".into();
    for body in [off, own, quiet] {
        let made = server.post(PODS, &body).await.is(201);
        let volumes = made["spec"]["volumes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let token = |v: &Value| v["name"].as_str().unwrap().starts_with("kube-api-access-");
        assert!(!volumes.iter().any(token), "{made}");
        if made["metadata"]["name"] == "quiet" {
            assert_eq!(made["spec"]["imagePullSecrets"], json!([{"name": "pull"}]));
        }
    }
}

#[tokio::test]
async fn a_pod_that_references_missing_objects_is_refused() {
    let server = TestServer::new().await;
    for (field, value, why) in [
        (
            "serviceAccountName",
            json!("none"),
            "error looking up service account default/none: serviceaccount \"none\" not found",
        ),
        (
            "priorityClassName",
            json!("none"),
            "no PriorityClass with name none was found",
        ),
        (
            "runtimeClassName",
            json!("none"),
            "pod rejected: RuntimeClass \"none\" not found",
        ),
    ] {
        let mut body = pod("p");
        body["spec"][field] = value;
        let words = format!("pods \"p\" is forbidden: {why}");
        let status = server
            .post(PODS, &body)
            .await
            .says(403, "Forbidden", &words);
        assert_eq!(status["details"], json!({"name": "p", "kind": "pods"}));
    }
}

#[tokio::test]
async fn a_priority_comes_from_its_class() {
    let server = TestServer::new().await;
    let made = server.pod("plain", "").await;
    assert_eq!(
        (&made["spec"]["priority"], &made["spec"]["preemptionPolicy"]),
        (&json!(0), &json!("PreemptLowerPriority"))
    );
    let mut critical = pod("critical");
    critical["spec"]["priorityClassName"] = "system-node-critical".into();
    assert_eq!(
        server.post(PODS, &critical).await.is(201)["spec"]["priority"],
        2_000_001_000
    );
    let mut own = pod("own");
    own["spec"]["priority"] = 7.into();
    let words = "pods \"own\" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name";
    server.post(PODS, &own).await.says(403, "Forbidden", words);
    let class = json!({"metadata": {"name": "usual"}, "value": 5, "globalDefault": true});
    server
        .post("/apis/scheduling.k8s.io/v1/priorityclasses", &class)
        .await
        .is(201);
    let made = server.pod("later", "").await;
    assert_eq!(
        (
            &made["spec"]["priority"],
            &made["spec"]["priorityClassName"]
        ),
        (&json!(5), &json!("usual"))
    );
}

#[tokio::test]
async fn pods_get_default_tolerations() {
    let server = TestServer::new().await;
    let trouble = |key: &str| {
        json!({
            "key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 300,
        })
    };
    let (not_ready, unreachable) = (trouble("not-ready"), trouble("unreachable"));
    let made = server.pod("p", "").await;
    assert_eq!(made["spec"]["tolerations"], json!([not_ready, unreachable]));
    let own =
        json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"});
    let mut stays = pod("stays");
    stays["spec"]["tolerations"] = json!([own]);
    let made = server.post(PODS, &stays).await.is(201);
    assert_eq!(made["spec"]["tolerations"], json!([own, unreachable]));
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn services_get_addresses_of_their_own() {
    let server = TestServer::new().await;
    let ports = json!([{"port": 80}]);
    let plain = service("a", &json!({"ports": ports}));
    let a = server.post(SERVICES, &plain).await.is(201);
    let address = a["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("10.96."), "{address}");
    assert_eq!(a["spec"]["clusterIPs"], json!([address]));
    let b = server
        .post(SERVICES, &service("b", &json!({"ports": ports})))
        .await
        .is(201);
    assert_ne!(b["spec"]["clusterIP"], a["spec"]["clusterIP"]);
    for (taken, words) in [
        (&*address, "provided IP is already allocated"),
        (
            "192.0.2.7",
            "the provided network does not match the current range",
        ),
    ] {
        let body = service("c", &json!({"ports": ports, "clusterIP": taken}));
        let status = server.post(SERVICES, &body).await.fails(422, "Invalid");
        assert!(
            status["message"].as_str().unwrap().contains(words),
            "{status}"
        );
    }
    // An update that leaves the address out keeps it.
    let kept = server.put(&format!("{SERVICES}/a"), &plain).await.ok();
    assert_eq!(
        (&kept["spec"]["clusterIP"], version(&kept)),
        (&a["spec"]["clusterIP"], version(&a))
    );
    let headless = service("h", &json!({"ports": ports, "clusterIP": "None"}));
    assert_eq!(
        server.post(SERVICES, &headless).await.is(201)["spec"]["clusterIPs"],
        json!(["None"])
    );
    let external = service(
        "e",
        &json!({"type": "ExternalName", "externalName": "example.com"}),
    );
    assert!(
        server.post(SERVICES, &external).await.is(201)["spec"]
            .get("clusterIP")
            .is_none()
    );
    server.delete(&format!("{SERVICES}/a")).await.ok();
    let body = service("again", &json!({"ports": ports, "clusterIP": address}));
    server.post(SERVICES, &body).await.is(201);
}

#[tokio::test]
async fn services_get_node_ports_of_their_own() {
    let server = TestServer::new().await;
    let spec = json!({"type": "NodePort", "ports": [{"name": "x", "port": 80}, {"name": "y", "port": 81}]});
    let made = server.post(SERVICES, &service("a", &spec)).await.is(201);
    let port = |n: usize| made["spec"]["ports"][n]["nodePort"].as_u64().unwrap();
    assert!((30000..=32767).contains(&port(0)) && port(0) != port(1));
    for (wanted, words) in [
        (port(0), "provided port is already allocated"),
        (
            80,
            "provided port is not in the valid range. The range of valid ports is 30000-32767",
        ),
    ] {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": wanted}]});
        let status = server
            .post(SERVICES, &service("b", &spec))
            .await
            .fails(422, "Invalid");
        assert!(
            status["message"].as_str().unwrap().contains(words),
            "{status}"
        );
    }
}

#[tokio::test]
async fn services_made_at_once_share_no_address() {
    let server = TestServer::new().await;
    let bodies: Vec<Value> = (0..20)
        .map(|n| service(&format!("s{n}"), &json!({"ports": [{"port": 80}]})))
        .collect();
    let posts = bodies.iter().map(|body| server.post(SERVICES, body));
    for answer in futures_util::future::join_all(posts).await {
        answer.is(201);
    }
    let list = server.get(SERVICES).await.ok();
    let items = list["items"].as_array().unwrap();
    let mut addresses: Vec<&str> = items
        .iter()
        .map(|s| s["spec"]["clusterIP"].as_str().unwrap())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), names(&list).len());
}
