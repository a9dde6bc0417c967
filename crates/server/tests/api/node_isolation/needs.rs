//! An agent can do all it needs for its own node and pods.

use serde_json::{Value, json};

use super::fixture::{
    CSI_NODES, Fixture, LEASES, REQUESTS, core, csi_node, event, lease, mirror, signing,
};

/// The requests of an agent's life, in its order: expected code, method, path, body.
const LIFE: &str = "
200 GET    {v1}/nodes?{own}
200 WATCH  {v1}/nodes?{own}
200 GET    {v1}/services
200 WATCH  {v1}/services?fieldSelector=spec.clusterIP!%3DNone
200 WATCH  /apis/node.k8s.io/v1/runtimeclasses
200 WATCH  /apis/storage.k8s.io/v1/csidrivers
200 GET    {csinodes}/a
200 DELETE /apis/resource.k8s.io/v1/resourceslices?{mine}
409 POST   {v1}/nodes                          node
200 GET    {v1}/nodes/a
200 PATCH  {v1}/nodes/a                        node
200 PATCH  {v1}/nodes/a/status                 ready
200 DELETE {csinodes}/a
201 POST   {csinodes}                          csinode
200 GET    {leases}/a
200 PATCH  {leases}/a                          renewal
200 DELETE {leases}/a
201 POST   {leases}                            lease
200 PATCH  {core}/events/event-a               count
200 GET    {v1}/pods?{mine}
200 WATCH  {v1}/pods?{mine}
200 GET    {core}/pods/pod-a
200 PATCH  {core}/pods/pod-a/status            running
200 GET    {core}/configmaps/map-a
200 WATCH  {core}/configmaps?fieldSelector=metadata.name%3Dmap-a
200 GET    {core}/secrets?fieldSelector=metadata.name%3Dsecret-a
200 GET    {core}/secrets/secret-a
200 GET    {core}/serviceaccounts/account-a
200 GET    {core}/persistentvolumeclaims/claim-a
200 GET    {v1}/persistentvolumes/volume-a
200 GET    {requests}/request-a
200 WATCH  {requests}?fieldSelector=metadata.name%3Drequest-a
201 POST   {core}/pods                         mirror
200 DELETE {core}/pods/static-a?gracePeriodSeconds=0
201 POST   {core}/pods/pod-a/eviction          eviction
200 DELETE {core}/pods/pod-a?gracePeriodSeconds=0
";

fn body(name: &str, node_uid: &Value) -> Value {
    match name {
        "node" => json!({"metadata": {"name": "a", "labels": {
            "kubernetes.io/hostname": "a", "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "large", "mine.example.com/rack": "7"}}}),
        "ready" => json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        "csinode" => csi_node("a"),
        "lease" => lease("a"),
        "renewal" => json!({"spec": {"leaseDurationSeconds": 40}}),
        "count" => json!({"count": 2}),
        "running" => json!({"status": {"phase": "Running"}}),
        "mirror" => mirror("a", node_uid),
        "eviction" => json!({"metadata": {"name": "pod-a"}}),
        other => panic!("no body {other}"),
    }
}

fn filled(path: &str) -> String {
    let words = [
        ("{v1}", "/api/v1"),
        ("{core}", "/api/v1/namespaces/default"),
        ("{leases}", LEASES),
        ("{csinodes}", CSI_NODES),
        ("{requests}", REQUESTS),
        ("{own}", "fieldSelector=metadata.name%3Da"),
        ("{mine}", "fieldSelector=spec.nodeName%3Da"),
    ];
    let fill = |path: String, (word, text): (&str, &str)| path.replace(word, text);
    words.into_iter().fold(path.to_owned(), fill)
}

#[tokio::test]
async fn an_agent_can_do_all_it_needs() {
    let fixture = Fixture::new().await;
    let uid = fixture.server.get("/api/v1/nodes/a").await.ok()["metadata"]["uid"].clone();
    for line in LIFE.trim().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [code, method, path] = [words[0], words[1], words[2]];
        let (path, body) = (filled(path), words.get(3).map(|name| body(name, &uid)));
        let answered = if method == "WATCH" {
            let join = if path.contains('?') { '&' } else { '?' };
            let path = format!("{path}{join}watch=true");
            (fixture.watch("a", &path).await, String::new())
        } else {
            let answer = fixture.send("a", method, &path, body.as_ref()).await;
            (answer.code, answer.text().to_owned())
        };
        assert_eq!(answered.0.to_string(), code, "{line}: {}", answered.1);
    }
    // A renewal as upstream's agents write it.
    let path = format!("{LEASES}/a");
    let mut lease = fixture.send("a", "GET", &path, None).await.ok();
    lease["spec"]["renewTime"] = "2026-01-02T03:04:05.000000Z".into();
    fixture.send("a", "PUT", &path, Some(&lease)).await.ok();
}

#[tokio::test]
async fn a_node_registers_itself_and_reports_its_own_events() {
    let fixture = Fixture::new().await;
    let node = json!({"metadata": {"name": "c", "labels": {"kubernetes.io/hostname": "c"}},
        "spec": {"taints": [{"key": "new", "effect": "NoSchedule"}]}});
    // A node may read its own Node before it exists.
    let own = fixture.send("c", "GET", "/api/v1/nodes/c", None).await;
    own.fails(404, "NotFound");
    for (path, body) in [
        ("/api/v1/nodes", node),
        (LEASES, lease("c")),
        (CSI_NODES, csi_node("c")),
        (REQUESTS, signing("c")),
        (&*core("events"), event("c")),
    ] {
        fixture.send("c", "POST", path, Some(&body)).await.is(201);
    }
}

/// Whether a node may read a secret at this moment.
async fn reads(fixture: &Fixture, node: &str, secret: &str) -> bool {
    let path = format!("{}/{secret}", core("secrets"));
    let code = fixture.send(node, "GET", &path, None).await.code;
    assert!(matches!(code, 200 | 403), "{code}");
    code == 200
}

#[tokio::test]
async fn rights_come_and_go_with_pods() {
    let fixture = Fixture::new().await;
    let secret = json!({"metadata": {"name": "late"}});
    fixture.server.post(&core("secrets"), &secret).await.is(201);
    assert!(!reads(&fixture, "a", "late").await);
    let pod = json!({"metadata": {"name": "late"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "imagePullSecrets": [{"name": "late"}]}});
    fixture.server.post(&core("pods"), &pod).await.is(201);
    assert!(
        !reads(&fixture, "a", "late").await,
        "nobody has the pod yet"
    );
    let binding = json!({"metadata": {"name": "late"}, "target": {"kind": "Node", "name": "a"}});
    let path = format!("{}/late/binding", core("pods"));
    fixture.server.post(&path, &binding).await.is(201);
    assert!(reads(&fixture, "a", "late").await);
    assert!(!reads(&fixture, "b", "late").await);
    let path = format!("{}/late?gracePeriodSeconds=0", core("pods"));
    fixture.server.delete(&path).await.ok();
    assert!(!reads(&fixture, "a", "late").await, "the last pod is gone");
    assert!(reads(&fixture, "a", "secret-a").await, "others are not");
}

#[tokio::test]
async fn rights_are_known_again_after_a_restart() {
    let mut fixture = Fixture::new().await;
    fixture.server = fixture.server.reopen().await;
    assert!(reads(&fixture, "a", "secret-a").await);
    assert!(!reads(&fixture, "a", "secret-b").await);
}
