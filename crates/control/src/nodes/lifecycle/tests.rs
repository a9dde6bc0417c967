//! The controller against an API that is unavailable for a while.

use std::time::Duration;

use std::convert::Infallible;
use std::sync::atomic::AtomicUsize;

use futures_util::stream::{self, StreamExt as _};
use http::{Method, Request, Response};
use kennel_client::feed::Change;
use kennel_client::work::WRITES_AT_ONCE;
use kube::client::Body;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;

/// More than are written to at once.
const NODES: usize = 3 * WRITES_AT_ONCE;

/// An API that answers 504 for the first `seconds`, and counts the patches that it accepts afterwards.
fn away_for(seconds: u64) -> (Client, Arc<AtomicUsize>) {
    answering(seconds, |_| 504)
}

/// An API whose storage fails for the first `seconds`: it answers writes with this code, and reads as ever.
fn without_storage_for(seconds: u64, code: u16) -> (Client, Arc<AtomicUsize>) {
    answering(seconds, move |request| match request.uri().path() {
        "/readyz" => 500,
        _ if request.method() == Method::GET => 200,
        _ => code,
    })
}

/// An API that answers with such codes for the first `seconds`, and counts the patches that it accepts afterwards.
fn answering(
    seconds: u64,
    code: impl Fn(&Request<Body>) -> u16 + Clone + Send + Sync + 'static,
) -> (Client, Arc<AtomicUsize>) {
    let (began, writes) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let count = writes.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let away = began.elapsed() < Duration::from_secs(seconds);
        if !away && request.method() == Method::PATCH {
            count.fetch_add(1, Ordering::SeqCst);
        }
        let code = if away { code(&request) } else { 200 };
        let body = Body::from(b"{}".to_vec());
        let answer = Response::builder().status(code).body(body).unwrap();
        async { Ok::<_, Infallible>(answer) }
    });
    (Client::new(service, "default"), writes)
}

fn ready(number: usize) -> Change<NodeFacts> {
    let node = serde_json::from_value(json!({
        "metadata": {"name": format!("n{number}"), "uid": format!("u{number}"),
            "resourceVersion": "1"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
    Change::Applied(view::node(&node.unwrap()))
}

fn controller(client: Client, setup: &Setup) -> NodeLifecycle {
    let (writer, recorder, _) = setup.recording_writer(client, "node-controller");
    NodeLifecycle {
        writer,
        recorder,
        monitor: Monitor::new(Settings::default()),
        outages: Arc::default(),
        node_failures: Failures::new(RETRY),
        pod_failures: Failures::new(RETRY),
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_get_their_full_grace_period_after_an_api_outage() {
    full_grace_period_after(away_for(600)).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_get_their_full_grace_period_after_storage_was_full_or_failed() {
    full_grace_period_after(without_storage_for(600, 507)).await;
    full_grace_period_after(without_storage_for(600, 500)).await;
}

async fn full_grace_period_after((client, writes): (Client, Arc<AtomicUsize>)) {
    let stop = CancellationToken::new();
    let mut watches = Watches::default();
    let nodes: Vec<_> = (0..NODES).map(ready).chain([Change::Synced]).collect();
    let nodes = stream::iter(nodes).chain(stream::pending());
    watches.add("nodes", nodes, Event::Node);
    let leases = stream::iter([Change::Synced]).chain(stream::pending());
    watches.add("node leases", leases, Event::Lease);
    let pods = stream::iter([Change::Synced]).chain(stream::pending());
    watches.add("pods", pods, Event::Pod);
    let setup = Setup::unfenced(stop.clone());
    let running = frame::run(controller(client, &setup), watches, setup);
    let running = tokio::spawn(running);
    sleep(Duration::from_secs(645)).await;
    assert_eq!(writes.load(Ordering::SeqCst), 0, "nobody had time to speak");
    sleep(Duration::from_secs(30)).await;
    assert!(writes.load(Ordering::SeqCst) >= NODES, "they stayed silent");
    stop.cancel();
    running.await.unwrap().unwrap();
}
