//! Electors against an API that holds one lease.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;

use super::*;

const DURATION: Duration = Duration::from_secs(15);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// One lease with compare-and-set, which can be made to fail or to hang.
#[derive(Clone, Default)]
struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    failing: bool,
    hanging: bool,
    forbidden: bool,
}

impl Api {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    fn spec(&self) -> Value {
        self.0.lock().unwrap().lease.as_ref().unwrap()["spec"].clone()
    }

    fn elector(&self, identity: &str) -> (Elector, Fence) {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        let lease = Lease {
            namespace: "kube-system".into(),
            name: "l".into(),
            identity: identity.into(),
            timing: Timing::default(),
        };
        let writer = Writer::new(Client::new(service, "default"), Fence::open());
        let fence = Fence::closed();
        (Elector::new(lease, writer, fence.clone()), fence)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        if self.0.lock().unwrap().hanging {
            std::future::pending::<()>().await;
        }
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let (code, answer) = self.serve(&head.method, &body);
        let text = answer.to_string().into_bytes();
        let response = Response::builder().status(code);
        response.body(Body::from(text)).unwrap()
    }

    fn serve(&self, method: &Method, body: &[u8]) -> (u16, Value) {
        let mut state = self.0.lock().unwrap();
        if state.failing {
            return (500, json!({}));
        }
        if state.forbidden && *method != Method::GET {
            let message =
                "leases.coordination.k8s.io is forbidden: User \"x\" cannot create resource";
            return (403, json!({"message": message, "reason": "Forbidden"}));
        }
        if *method == Method::GET {
            return match &state.lease {
                Some(lease) => (200, lease.clone()),
                None => (404, json!({})),
            };
        }
        let mut new: Value = serde_json::from_slice(body).unwrap();
        let version = &new["metadata"]["resourceVersion"];
        let expected = state
            .lease
            .as_ref()
            .map(|l| &l["metadata"]["resourceVersion"]);
        if expected.unwrap_or(&Value::Null) != version {
            return (409, json!({}));
        }
        state.version += 1;
        new["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(new.clone());
        (200, new)
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_one_creates_the_lease_and_renews_it() {
    let api = Api::default();
    let (mut one, fence) = api.elector("one");
    let stop = CancellationToken::new();
    assert!(one.acquire(&stop).await.unwrap());
    assert!(fence.is_open());
    let before = api.spec();
    assert_eq!(before["holderIdentity"], "one");
    assert_eq!(before["leaseDurationSeconds"], 15);
    assert_eq!(before["leaseTransitions"], 0);
    let holding = tokio::time::timeout(Duration::from_mins(1), one.renew(&stop));
    assert!(
        holding.await.is_err(),
        "it is held for as long as it is renewed"
    );
    assert!(fence.is_open());
    assert_eq!(api.spec()["acquireTime"], before["acquireTime"]);
    assert_ne!(api.spec()["renewTime"], before["renewTime"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_one_waits_until_the_first_has_been_silent_for_the_whole_duration() {
    let api = Api::default();
    let (mut one, first) = api.elector("one");
    let (mut two, second) = api.elector("two");
    let stop = CancellationToken::new();
    assert!(one.acquire(&stop).await.unwrap());
    let began = Instant::now();
    assert!(two.acquire(&stop).await.unwrap());
    assert!(began.elapsed() >= DURATION, "{:?}", began.elapsed());
    assert!(!first.is_open(), "the first had stopped before");
    assert!(second.is_open());
    assert_eq!(api.spec()["holderIdentity"], "two");
    assert_eq!(api.spec()["leaseTransitions"], 1);
    // The first one sees it at its next try, and ends at once.
    let began = Instant::now();
    one.renew(&stop).await;
    assert!(began.elapsed() <= RETRY);
    assert!(!first.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_stops_writing_before_others_may_take_over() {
    for hang in [false, true] {
        let api = Api::default();
        let (mut one, fence) = api.elector("one");
        let stop = CancellationToken::new();
        assert!(one.acquire(&stop).await.unwrap());
        let won = Instant::now();
        api.set(|state| (state.failing, state.hanging) = (!hang, hang));
        let watching = fence.clone();
        let closes = async {
            while watching.is_open() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            won.elapsed()
        };
        let (closed, ()) = tokio::join!(closes, one.renew(&stop));
        assert!(
            closed <= RENEW_DEADLINE + Duration::from_millis(20),
            "{closed:?}"
        );
        assert!(won.elapsed() < DURATION, "{:?}", won.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_failure_costs_nothing() {
    let api = Api::default();
    let (mut one, fence) = api.elector("one");
    let stop = CancellationToken::new();
    assert!(one.acquire(&stop).await.unwrap());
    api.set(|state| state.failing = true);
    let repair = api.clone();
    let holding = async {
        let all = tokio::time::timeout(Duration::from_secs(30), one.renew(&stop));
        assert!(all.await.is_err(), "still held");
    };
    let repaired = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        repair.set(|state| state.failing = false);
    };
    tokio::join!(holding, repaired);
    assert!(fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_lease_given_back_can_be_taken_at_once() {
    let api = Api::default();
    let (mut one, fence) = api.elector("one");
    let (mut two, _) = api.elector("two");
    let stop = CancellationToken::new();
    assert!(one.acquire(&stop).await.unwrap());
    one.release().await;
    assert!(!fence.is_open());
    assert_eq!(api.spec()["holderIdentity"], "");
    let began = Instant::now();
    assert!(two.acquire(&stop).await.unwrap());
    assert!(began.elapsed() < RETRY);
    assert_eq!(api.spec()["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_told_to_stop_stops_waiting() {
    let api = Api::default();
    let (mut one, _) = api.elector("one");
    let (mut two, fence) = api.elector("two");
    let stop = CancellationToken::new();
    assert!(one.acquire(&stop).await.unwrap());
    stop.cancel();
    assert!(!two.acquire(&stop).await.unwrap());
    assert!(!fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_term_lasts_as_long_as_the_lease_and_its_end_gives_the_lease_back() {
    let api = Api::default();
    let (one, fence) = api.elector("one");
    let stop = CancellationToken::new();
    let terms = Mutex::new(Vec::new());
    let breakage = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        api.set(|state| state.failing = true);
        tokio::time::sleep(Duration::from_secs(20)).await;
        api.set(|state| state.failing = false);
        tokio::time::sleep(Duration::from_secs(20)).await;
        stop.cancel();
    };
    let (fence, terms, stop) = (&fence, &terms, &stop);
    let leading = one.lead(stop, || async move {
        assert!(fence.is_open());
        terms.lock().unwrap().push("begun");
        stop.cancelled().await;
        assert!(fence.is_open(), "what has begun may be finished");
        terms.lock().unwrap().push("finished");
    });
    let (ended, ()) = tokio::join!(leading, breakage);
    assert!(ended.unwrap().is_some());
    assert_eq!(*terms.lock().unwrap(), ["begun", "begun", "finished"]);
    assert_eq!(api.spec()["holderIdentity"], "");
    assert!(!fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_may_not_write_the_lease_gives_up_and_says_which() {
    let api = Api::default();
    api.set(|state| state.forbidden = true);
    let (mut one, fence) = api.elector("one");
    let error = one.acquire(&CancellationToken::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot use the lease kube-system/l for leader election"
    );
    assert!(error.failure.to_string().contains("is forbidden"));
    assert!(!fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn rights_that_come_a_moment_later_are_waited_for() {
    let api = Api::default();
    api.set(|state| state.forbidden = true);
    let (mut one, _) = api.elector("one");
    let granted = async {
        tokio::time::sleep(RETRY).await;
        api.set(|state| state.forbidden = false);
    };
    let stop = CancellationToken::new();
    let (acquired, ()) = tokio::join!(one.acquire(&stop), granted);
    assert!(acquired.unwrap());
}
