//! Names follow the API: a server of names beside an API server in the same process.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail")]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kennel_dns::{Server, Settings};
use kennel_testkit::inprocess;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, Question, RCODE, TYPE};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

/// The addresses of a name, sorted; empty if there is no such name or the watch is not in sync yet.
async fn look(server: SocketAddr, name: &str) -> Option<Vec<IpAddr>> {
    let mut question = Packet::new_query(7);
    question.questions.push(Question::new(
        Name::new(name).unwrap(),
        TYPE::A.into(),
        CLASS::IN.into(),
        false,
    ));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let question = question.build_bytes_vec().unwrap();
    socket.send_to(&question, server).await.unwrap();
    let mut buffer = vec![0; 1500];
    let count = socket.recv(&mut buffer).await.unwrap();
    let answer = Packet::parse(&buffer[..count]).unwrap();
    if answer.rcode() != RCODE::NoError {
        return None;
    }
    let address = |data: &RData<'_>| match data {
        RData::A(a) => Some(IpAddr::V4(a.address.into())),
        _ => None,
    };
    let records = answer.answers.iter();
    let mut all: Vec<IpAddr> = records.filter_map(|r| address(&r.rdata)).collect();
    all.sort();
    Some(all)
}

/// Waits until a name of `agent` leads there.
async fn check(server: SocketAddr, below: &str, expected: Option<&[[u8; 4]]>) {
    let name = format!("{below}agent.default.svc.example.org");
    let expected: Option<Vec<IpAddr>> =
        expected.map(|all| all.iter().map(|octets| IpAddr::from(*octets)).collect());
    let mut seen = None;
    for _ in 0..600 {
        seen = look(server, &name).await;
        if seen == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{name} leads to {seen:?}, not to {expected:?}");
}

async fn create(client: &Client) {
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"metadata": {"name": "agent"}, "spec": {"clusterIP": "None"}});
    let service = serde_json::from_value(service).unwrap();
    services
        .create(&PostParams::default(), &service)
        .await
        .unwrap();
    let slices: Api<EndpointSlice> = Api::default_namespaced(client.clone());
    let slice = json!({
        "metadata": {"name": "agent-1", "labels": {"kubernetes.io/service-name": "agent"}},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.0.0.1"], "nodeName": "a.rack", "conditions": {"ready": true}},
            {"addresses": ["10.0.0.2"], "nodeName": "b.rack"},
            {"addresses": ["10.0.0.3"], "nodeName": "c.rack", "conditions": {"ready": false}}]});
    let slice = serde_json::from_value(slice).unwrap();
    slices.create(&PostParams::default(), &slice).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_come_and_go_with_services_and_endpoints() {
    let api = inprocess::Server::open().await;
    let client = api.client("test");
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        domain: "Example.org.".to_owned(),
        upstreams: Vec::new(),
        recursion_for: Vec::new(),
    };
    let server = Server::bind(settings).await.unwrap();
    let address = server.address();
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.clone().run(client.clone(), stop.clone()));
    create(&client).await;
    let (first, second) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    check(address, "", Some(&[first, second])).await;
    check(address, "b.rack.", Some(&[second])).await;
    check(address, "c.rack.", None).await;
    check(address, "rack.", Some(&[])).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    // Objects that are deleted while the watch is interrupted are gone afterwards.
    let slices: Api<EndpointSlice> = Api::default_namespaced(client.clone());
    let gone = slices.delete("agent-1", &DeleteParams::default()).await;
    assert!(gone.unwrap().is_right());
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.run(client.clone(), stop.clone()));
    check(address, "", None).await;
    check(address, "b.rack.", None).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
