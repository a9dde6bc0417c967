//! `metrics.k8s.io`: what nodes and pods use.

use http::{Method, header};
use kennel_server::request::User;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::fixture::{Answer, NODES, PODS, request};

const NODE_METRICS: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const POD_METRICS: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";

/// The names in a list.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    let names = items.iter().map(|item| &item["metadata"]["name"]);
    names.map(|name| name.as_str().unwrap()).collect()
}

/// Without the time at which the object was computed.
fn untimed(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    let time = metadata.remove("creationTimestamp");
    assert!(time.is_some_and(|time| time.is_string()));
    object
}

async fn listed(fixture: &Fixture, path: &str, query: &str) -> Value {
    fixture.get(&format!("{path}?{query}")).await.is(200)
}

async fn table(fixture: &Fixture, path: &str) -> Answer {
    let mut asked = request(Method::GET, path, None);
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let headers = asked.headers_mut();
    headers.insert(header::ACCEPT, accept.parse().unwrap());
    fixture.send(asked, User::master("tester")).await
}

#[tokio::test]
async fn nodes_whose_agents_answer_are_listed() {
    let mut fixture = Fixture::new().await;
    // Nobody listens there; and a simulated node has no agent at all.
    fixture.node("away", 1).await;
    fixture.node("simulated", 0).await;
    let list = fixture.get(NODE_METRICS).await.is(200);
    assert_eq!(list["kind"], "NodeMetricsList");
    assert_eq!(list["apiVersion"], "metrics.k8s.io/v1beta1");
    assert_eq!(names(&list), ["n"]);
    let seen = fixture.agent.seen.recv().await.unwrap();
    let asked = "GET /stats/summary?only_cpu_and_memory=true ";
    assert!(seen.head.starts_with(asked), "{seen:?}");
    assert_eq!(seen.user, "kube-apiserver-kubelet-client");
    let node = fixture.get(&format!("{NODE_METRICS}/n")).await.is(200);
    let expected = json!({
        "kind": "NodeMetrics", "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "n"},
        "timestamp": "2026-01-02T03:04:05Z", "window": "12.5s",
        "usage": {"cpu": "500m", "memory": "1Mi"},
    });
    assert_eq!(untimed(node), expected);
    // Answers are kept for a while.
    assert!(fixture.agent.seen.try_recv().is_err());
    for name in ["away", "simulated", "absent"] {
        let answer = fixture.get(&format!("{NODE_METRICS}/{name}")).await;
        let words = format!("nodes.metrics.k8s.io \"{name}\" not found");
        answer.says(404, "NotFound", &words);
    }
}

#[tokio::test]
async fn pods_are_listed_with_their_containers() {
    let fixture = Fixture::new().await;
    let container = json!([{"name": "c", "image": "i:1"}]);
    fixture.pod("new", "n", container.clone()).await;
    fixture.pod("lost", "gone", container).await;
    let list = fixture.get(POD_METRICS).await.is(200);
    assert_eq!(list["kind"], "PodMetricsList");
    assert_eq!(names(&list), ["one", "p"]);
    let everywhere = "/apis/metrics.k8s.io/v1beta1/pods";
    let list = fixture.get(everywhere).await.is(200);
    assert_eq!(names(&list), ["one", "p"]);
    let elsewhere = POD_METRICS.replace("default", "kube-system");
    assert_eq!(names(&fixture.get(&elsewhere).await.is(200)), [""; 0]);
    let pod = fixture.get(&format!("{POD_METRICS}/p")).await.is(200);
    let expected = json!({
        "kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "p", "namespace": "default"},
        "timestamp": "2026-01-02T03:04:04Z", "window": "10s",
        "containers": [
            {"name": "c", "usage": {"cpu": "1500u", "memory": "1500"}},
            {"name": "refused", "usage": {"cpu": "1n", "memory": "2Ki"}},
        ],
    });
    assert_eq!(untimed(pod), expected);
    let answer = fixture.get(&format!("{POD_METRICS}/new")).await;
    let words = "pods.metrics.k8s.io \"default/new\" not found";
    answer.says(404, "NotFound", words);
}

#[tokio::test]
async fn selectors_are_those_of_nodes_and_pods() {
    let mut fixture = Fixture::new().await;
    let label = json!({"metadata": {"labels": {"app": "web"}}});
    for path in [format!("{NODES}/n"), format!("{PODS}/p")] {
        let mut patch = request(Method::PATCH, &path, Some(&label));
        let merge = "application/merge-patch+json".parse().unwrap();
        patch.headers_mut().insert(header::CONTENT_TYPE, merge);
        fixture.send(patch, User::master("tester")).await.is(200);
    }
    let none = listed(&fixture, NODE_METRICS, "labelSelector=app%3Dother").await;
    assert_eq!(none["items"], json!([]));
    let asked = fixture.agent.seen.try_recv();
    assert!(asked.is_err(), "no agent is asked about nothing");
    let list = listed(&fixture, NODE_METRICS, "labelSelector=app%3Dweb").await;
    let labels = json!({"app": "web"});
    assert_eq!(list["items"][0]["metadata"]["labels"], labels);
    for (query, expected) in [
        ("labelSelector=app%3Dweb", "p"),
        ("labelSelector=app%21%3Dweb", "one"),
        ("fieldSelector=metadata.name%3Done", "one"),
    ] {
        let list = listed(&fixture, POD_METRICS, query).await;
        assert_eq!(names(&list), [expected], "{query}");
    }
    let answer = fixture
        .get(&format!("{POD_METRICS}?labelSelector=a%20b%20c"))
        .await;
    answer.fails(400, "BadRequest");
}

#[tokio::test]
async fn tables_are_metrics_servers() {
    let fixture = Fixture::new().await;
    let nodes = table(&fixture, NODE_METRICS).await.is(200);
    let columns = nodes["columnDefinitions"].as_array().unwrap();
    let columns: Vec<_> = columns
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["format"].as_str().unwrap()))
        .collect();
    let expected = [
        ("Name", "name"),
        ("cpu", "quantity"),
        ("memory", "quantity"),
        ("Window", "duration"),
    ];
    assert_eq!(columns, expected);
    let cells = &nodes["rows"][0]["cells"];
    assert_eq!(cells, &json!(["n", "500m", "1Mi", "12.5s"]));
    let pods = table(&fixture, POD_METRICS).await.is(200);
    let row = &pods["rows"][1];
    assert_eq!(row["cells"], json!(["p", "1500001n", "3548", "10s"]));
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"]["namespace"], "default");
    let one = table(&fixture, &format!("{NODE_METRICS}/n")).await.is(200);
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn usage_is_read_by_those_who_may_and_written_by_nobody() {
    let fixture = Fixture::new().await;
    let guest = User::authenticated("guest", Vec::new());
    let get = request(Method::GET, NODE_METRICS, None);
    let answer = fixture.send(get, guest).await;
    assert_eq!(answer.code, 403, "{}", answer.text());
    let message = answer.json()["message"].to_string();
    assert!(message.contains("cannot list resource"), "{message}");
    assert!(message.contains("metrics.k8s.io"), "{message}");
    let watch = fixture.get(&format!("{NODE_METRICS}?watch=true")).await;
    assert_eq!(watch.code, 405);
    let delete = request(Method::DELETE, &format!("{POD_METRICS}/p"), None);
    let answer = fixture.send(delete, User::master("tester")).await;
    assert_eq!(answer.code, 405);
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregated-metrics-reader";
    let role = fixture.get(role).await.is(200);
    let rule = json!({"apiGroups": ["metrics.k8s.io"], "resources": ["nodes", "pods"],
        "verbs": ["get", "list", "watch"]});
    assert_eq!(role["rules"], json!([rule]));
    for readers in ["view", "edit", "admin"] {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{readers}");
        assert_eq!(role["metadata"]["labels"][label], "true");
    }
}
