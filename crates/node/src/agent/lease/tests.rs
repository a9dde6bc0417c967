//! Agents against an API that holds one Lease.

use std::convert::Infallible;
use std::sync::Mutex;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;

use super::*;

/// One Lease with compare-and-set.
#[derive(Clone, Default)]
struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    /// Requests are applied, and their answers are lost.
    loses_answers: bool,
    /// Cancelled when a request has been applied, before it is answered.
    stops: Option<CancellationToken>,
    /// Nothing gets through.
    unreachable: bool,
}

impl Api {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    fn holder(&self) -> Value {
        let state = self.0.lock().unwrap();
        let lease = state.lease.as_ref().unwrap();
        lease["metadata"]["annotations"][HOLDER].clone()
    }

    fn agent(&self, holder: Holder) -> (Lease, Fence) {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        let writer = Writer::new(Client::new(service, "default"), Fence::open());
        let fence = Fence::closed();
        (Lease::new(writer, fence.clone(), "n1", holder), fence)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        // Others run between a request and its effect.
        tokio::task::yield_now().await;
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let (code, answer) = self.serve(&head.method, &body);
        let stops = self.0.lock().unwrap().stops.clone();
        if let Some(stop) = stops.filter(|_| head.method != Method::GET) {
            stop.cancel();
            tokio::task::yield_now().await;
        }
        let response = Response::builder().status(code);
        response
            .body(Body::from(answer.to_string().into_bytes()))
            .unwrap()
    }

    fn serve(&self, method: &Method, body: &[u8]) -> (u16, Value) {
        let mut state = self.0.lock().unwrap();
        if state.unreachable {
            return (502, json!({}));
        }
        if *method == Method::GET {
            let lease = state.lease.clone();
            return lease.map_or((404, json!({})), |lease| (200, lease));
        }
        let mut new: Value = serde_json::from_slice(body).unwrap();
        let live = state.lease.as_ref();
        let live = live.map_or(&Value::Null, |lease| &lease["metadata"]["resourceVersion"]);
        if *live != new["metadata"]["resourceVersion"] {
            return (409, json!({}));
        }
        state.version += 1;
        new["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(new.clone());
        if state.loses_answers {
            return (502, json!({}));
        }
        (200, new)
    }
}

fn on_machine(machine: &str) -> Holder {
    Holder::current(&Machine {
        machine_id: machine.to_owned(),
        boot_id: "b1".to_owned(),
        ..Machine::default()
    })
}

fn unregistered() -> watch::Receiver<Arc<Value>> {
    watch::channel(Arc::new(json!({}))).1
}

fn is_held(result: &Result<Claim, LeaseError>) -> bool {
    matches!(result, Err(LeaseError::Held { .. }))
}

#[tokio::test(start_paused = true)]
async fn of_two_agents_that_start_at_once_one_gets_the_lease() {
    let api = Api::default();
    let (mut one, first_fence) = api.agent(on_machine("m1"));
    let (mut two, second_fence) = api.agent(on_machine("m2"));
    let second = async {
        let claimed = two.claim(&CancellationToken::new()).await;
        assert!(!second_fence.is_open());
        claimed
    };
    let first = async {
        assert!(matches!(
            one.claim(&CancellationToken::new()).await,
            Ok(Claim::Ours)
        ));
        let forever = one.run(unregistered(), CancellationToken::new());
        forever.await
    };
    let refused = tokio::select! {
        // Each asks before the other has written.
        biased;
        ended = first => panic!("{ended:?}"),
        refused = second => refused,
    };
    assert!(is_held(&refused), "{refused:?}");
    assert!(first_fence.is_open());
    assert_eq!(api.holder(), on_machine("m1").text());
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_does_not_overwrite_another_agents_lease() {
    let api = Api::default();
    let (mut one, fence) = api.agent(on_machine("m1"));
    assert!(matches!(
        one.claim(&CancellationToken::new()).await,
        Ok(Claim::Ours)
    ));
    api.set(|state| state.unreachable = true);
    let before = Instant::now();
    assert!(one.renew(None).await.is_err());
    assert!(fence.is_open(), "it still holds the lease");
    tokio::time::advance(WRITE_DURATION).await;
    assert!(!fence.is_open());
    // Meanwhile another agent takes the node over, which is allowed after the duration of the lease.
    api.set(|state| state.unreachable = false);
    let (mut two, other) = api.agent(on_machine("m2"));
    assert!(matches!(
        two.claim(&CancellationToken::new()).await,
        Ok(Claim::Ours)
    ));
    assert!(before.elapsed() >= LEASE_DURATION, "{:?}", before.elapsed());
    assert!(other.is_open() && !fence.is_open());
    let lost = tokio::select! {
        lost = one.run(unregistered(), CancellationToken::new()) => lost,
        ended = two.run(unregistered(), CancellationToken::new()) => panic!("{ended:?}"),
    };
    let words = "an agent on another machine is already node n1";
    assert!(lost.unwrap_err().to_string().starts_with(words));
    assert_eq!(api.holder(), on_machine("m2").text());
    assert!(other.is_open() && !fence.is_open());
}

/// Runs an agent on machine `m1` that holds the Lease while a restore replaces it by one of `holder`. Returns how long it
/// could not write, or why it has ended.
async fn restored(holder: &str) -> Result<Duration, LeaseError> {
    let api = Api::default();
    let (mut one, fence) = api.agent(on_machine("m1"));
    assert!(matches!(
        one.claim(&CancellationToken::new()).await,
        Ok(Claim::Ours)
    ));
    api.set(|state| {
        state.version += 4_000_000_000;
        let mut restored = lease(Some(holder));
        restored["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(restored);
    });
    let own = on_machine("m1").text();
    let takes_it_back = async {
        while fence.is_open() && api.holder() != own {
            tokio::task::yield_now().await;
        }
        let found = Instant::now();
        while !fence.is_open() {
            assert_eq!(api.holder(), holder, "closed until the lease is its own");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(api.holder(), own);
        found.elapsed()
    };
    let running = one.run(unregistered(), CancellationToken::new());
    tokio::select! {
        biased;
        ended = running => Err(ended.unwrap_err()),
        closed = takes_it_back => Ok(closed),
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_lease_of_an_agent_that_has_ended_is_taken_back_at_once() {
    let own = on_machine("m1");
    let here = own.namespace.unwrap();
    let parent = std::os::unix::process::parent_id();
    let started = process_start(parent).unwrap();
    let killed = format!("m1.b1.{parent}.{}.{here}", started + 1);
    let released = "";
    for holder in [&killed, released] {
        let closed = restored(holder).await.unwrap();
        assert!(closed < WATCH_INTERVAL, "{holder:?}: {closed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_lease_of_an_earlier_boot_is_taken_back_if_nobody_renews_it() {
    for holder in ["m1.b0.1.1.1", "m2.b1.1.1.1", "m1.b1.1.1.7"] {
        let closed = restored(holder).await.unwrap();
        let most = LEASE_DURATION + 2 * WATCH_INTERVAL;
        assert!(closed >= LEASE_DURATION && closed < most, "{closed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_lease_of_an_agent_that_runs_on_this_machine_is_left_to_it() {
    let here = on_machine("m1").namespace.unwrap();
    let parent = std::os::unix::process::parent_id();
    let started = process_start(parent).unwrap();
    let lost = restored(&format!("m1.b1.{parent}.{started}.{here}")).await;
    let words = format!("another agent on this machine, process {parent}, is already node n1");
    assert!(lost.unwrap_err().to_string().starts_with(&words));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_watches_its_restored_lease_can_be_stopped() {
    let api = Api::default();
    let (mut one, fence) = api.agent(on_machine("m1"));
    assert!(matches!(
        one.claim(&CancellationToken::new()).await,
        Ok(Claim::Ours)
    ));
    let elsewhere = "m2.b1.1.1.1";
    api.set(|state| {
        state.version += 1;
        let mut restored = lease(Some(elsewhere));
        restored["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(restored);
    });
    let stop = CancellationToken::new();
    let before = Instant::now();
    let ends = async {
        fence.wait_closed().await;
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = one.run(unregistered(), stop.clone()) => ended.unwrap(),
        () = ends => {}
    }
    assert!(before.elapsed() < LEASE_DURATION, "{:?}", before.elapsed());
    one.release().await;
    assert_eq!(api.holder(), elsewhere);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_or_a_deleted_lease_costs_nothing() {
    let api = Api::default();
    let (mut one, fence) = api.agent(on_machine("m1"));
    assert!(matches!(
        one.claim(&CancellationToken::new()).await,
        Ok(Claim::Ours)
    ));
    api.set(|state| state.loses_answers = true);
    assert!(one.renew(None).await.is_err());
    api.set(|state| state.loses_answers = false);
    one.renew(Some("uid-1")).await.unwrap();
    api.set(|state| {
        let owner = &state.lease.as_ref().unwrap()["metadata"]["ownerReferences"][0]["uid"];
        assert_eq!(owner, "uid-1");
        state.lease = None;
    });
    one.renew(None).await.unwrap();
    assert!(fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    let api = Api::default();
    let (mut one, fence) = api.agent(on_machine("m1"));
    assert!(matches!(
        one.claim(&CancellationToken::new()).await,
        Ok(Claim::Ours)
    ));
    one.release().await;
    assert!(!fence.is_open());
    let before = Instant::now();
    let (mut two, _) = api.agent(on_machine("m2"));
    assert!(matches!(
        two.claim(&CancellationToken::new()).await,
        Ok(Claim::Ours)
    ));
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_taken_while_the_agent_stops_is_released() {
    let api = Api::default();
    let (mut one, fence) = api.agent(on_machine("m1"));
    let stop = CancellationToken::new();
    api.set(|state| state.stops = Some(stop.clone()));
    assert!(matches!(one.claim(&stop).await, Ok(Claim::Ours)));
    assert!(stop.is_cancelled() && fence.is_open());
    one.release().await;
    assert_eq!(api.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_watches_a_lease_before_it_takes_it_can_be_stopped() {
    let api = Api::default();
    api.set(|state| state.lease = Some(lease(Some("m2.b1.1.1.1"))));
    let (mut one, _) = api.agent(on_machine("m1"));
    let stop = CancellationToken::new();
    let stops = async {
        tokio::time::sleep(3 * WATCH_INTERVAL).await;
        stop.cancel();
    };
    let before = Instant::now();
    let (claimed, ()) = tokio::join!(one.claim(&stop), stops);
    assert!(matches!(claimed, Ok(Claim::Stopped)), "{claimed:?}");
    assert!(before.elapsed() < 4 * WATCH_INTERVAL);
}

fn lease(holder: Option<&str>) -> Value {
    let mut lease = json!({"metadata": {}, "spec": {
        "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 40}});
    if let Some(holder) = holder {
        lease["metadata"]["annotations"] = json!({HOLDER: holder});
    }
    lease
}

#[test]
fn an_agent_may_take_a_lease_that_no_other_holds() {
    let own = on_machine("m1");
    let parent = std::os::unix::process::parent_id();
    let alive = process_start(parent).unwrap();
    let here = own.namespace.unwrap();
    let check = |holder: Option<&str>, unchanged: u64, expected: Decision| {
        let found = decide(&lease(holder), &own, Duration::from_secs(unchanged));
        assert_eq!(found, expected, "{holder:?} {unchanged}");
    };
    for elsewhere in [Some("m2.b1.1.1.1"), Some("m1.b2.1.1.1"), None] {
        check(elsewhere, 39, Decision::Watch);
        check(elsewhere, 40, Decision::Ours);
    }
    check(Some(""), 0, Decision::Ours);
    check(Some(&own.text()), 0, Decision::Ours);
    let killed = format!("m1.b1.{parent}.{}.{here}", alive + 1);
    check(Some(&killed), 0, Decision::Ours);
    // In another PID namespace, a process of that number is another one.
    let contained = format!("m1.b1.{parent}.{}.{}", alive + 1, here + 1);
    check(Some(&contained), 0, Decision::Watch);
    let held = format!("another agent on this machine, process {parent},");
    // Agents of version 0.1 did not give their PID namespace.
    for neighbour in [
        format!("m1.b1.{parent}.{alive}.{here}"),
        format!("m1.b1.{parent}.{alive}"),
    ] {
        check(Some(&neighbour), 0, Decision::Held(held.clone()));
    }
}

#[test]
fn a_holder_parses_back() {
    let own = on_machine("m1");
    assert!(own.is_alive());
    assert_eq!(Holder::parse(&own.text()), Some(own));
    assert_eq!(Holder::parse("x"), None);
}
