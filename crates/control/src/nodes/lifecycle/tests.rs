//! The loop against an API that does not answer for a while.

use std::convert::Infallible;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;

/// How many nodes there are: more than are written to at once.
const NODES: usize = 3 * WRITES_AT_ONCE;

/// An API that answers nothing for the first so many seconds, and counts the writes that it carries out.
fn away_for(seconds: u64) -> (Client, Arc<AtomicUsize>) {
    let (began, writes) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let count = writes.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let away = began.elapsed() < Duration::from_secs(seconds);
        if !away && request.method() == Method::PATCH {
            count.fetch_add(1, Ordering::SeqCst);
        }
        let code = if away { 504 } else { 200 };
        let body = Body::from(b"{}".to_vec());
        let answer = Response::builder().status(code).body(body).unwrap();
        async { Ok::<_, Infallible>(answer) }
    });
    (Client::new(service, "default"), writes)
}

fn ready(number: usize) -> Seen {
    let node = serde_json::from_value(json!({
        "metadata": {"name": format!("n{number}"), "uid": format!("u{number}"),
            "resourceVersion": "1"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
    Seen::Node(Change::Applied(facts::node(&node.unwrap())))
}

fn controller(client: Client, stop: &CancellationToken) -> Controller {
    let writer = Writer::new(client, Fence::open());
    let (recorder, _scribe) = Recorder::new(writer.clone(), "node-controller", stop.clone());
    Controller {
        writer,
        recorder,
        monitor: Monitor::new(Settings::default()),
        work: Work::new(WRITES_AT_ONCE),
        watch: Stopwatch::start(),
        unsynced: [true; 3],
        silences: Arc::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_could_not_be_heard_because_the_api_was_away_get_their_full_time() {
    let (client, writes) = away_for(600);
    let stop = CancellationToken::new();
    let synced = [
        Seen::Lease(Change::Synced),
        Seen::Pod(Change::Synced),
        Seen::Node(Change::Synced),
    ];
    let first = (0..NODES).map(ready).chain(synced);
    let seen = stream::iter(first.collect::<Vec<_>>()).chain(stream::pending());
    let running = controller(client, &stop).run(seen.boxed(), stop.clone());
    let running = tokio::spawn(running);
    sleep(Duration::from_secs(645)).await;
    assert_eq!(writes.load(Ordering::SeqCst), 0, "nobody had time to speak");
    sleep(Duration::from_secs(30)).await;
    assert!(writes.load(Ordering::SeqCst) >= NODES, "they stayed silent");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_kind_that_is_listed_again_does_not_stand_for_another() {
    let (client, _) = away_for(0);
    let mut controller = controller(client, &CancellationToken::new());
    controller.saw(ready(1));
    for _ in 0..3 {
        controller.saw(Seen::Lease(Change::Synced));
        controller.saw(Seen::Pod(Change::Synced));
    }
    assert_eq!(
        controller.monitor.next_deadline(),
        None,
        "there may be more nodes"
    );
    controller.saw(Seen::Node(Change::Synced));
    assert!(controller.monitor.next_deadline().is_some());
}
