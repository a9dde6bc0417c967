//! An agent that is killed at any moment while it creates a pod, and its successor.

use std::future::Future;
use std::time::Duration;

use kennel_core::pod::Run;
use kennel_node::runtime::{Error, Result, Runtime};
use kennel_testkit::machine::possible;
use tokio::time::{Instant, sleep, timeout};

use crate::fixture::{DEADLINE, Fixture};

/// What an agent that was killed has asked for is given up by the runtime, or was done. It is asked for again
/// until it is done.
async fn again<T, F: Future<Output = Result<T>>>(after: Duration, ask: impl Fn() -> F) -> T {
    // Whether it was done in time does not matter.
    let _given_up = timeout(after, ask()).await;
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(done) => return done,
            Err(Error::Unavailable(_)) if Instant::now() < deadline => {
                sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("after {after:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn an_interrupted_pod_is_created_once() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let container = fixture.script("app", "sleep 1000").await;
    for milliseconds in [0, 10, 40, 90, 160] {
        let after = Duration::from_millis(milliseconds);
        let mut config = fixture.pod(&format!("pod-{milliseconds}"));
        config.host_network = false;
        config.hostname = "pod".to_owned();
        let (cri, config, container) = (&fixture.cri, &config, &container);
        let sandbox = again(after, || cri.start_sandbox(config)).await;
        let sandbox = sandbox.as_str();
        let id = again(after / 4, || cri.create(config, sandbox, container)).await;
        again(after / 2, || cri.start(&id)).await;

        let found = cri.inspect(&config.pod.uid).await.unwrap().unwrap();
        // A start that was given up is no run: nothing has run yet, and what comes next is the first one.
        let runs: Vec<_> = found.observed.runs.iter().map(|run| &run.id).collect();
        assert!(
            runs.is_empty() || runs == [&id],
            "after {after:?}: {runs:?}"
        );
        let ran = found.observed.runs.iter().all(Run::is_running);
        assert!(ran, "after {after:?}: {:?}", found.observed.runs);
        assert_eq!(
            found.observed.sandbox.unwrap().id,
            sandbox,
            "after {after:?}"
        );
        assert_eq!(found.stale, [""; 0], "after {after:?}");
    }
    assert_eq!(fixture.cri.list().await.unwrap().len(), 5);
}
