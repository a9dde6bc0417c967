//! The election against an API that holds one lease.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;

#[derive(Clone, Default)]
struct Api(Arc<Mutex<Value>>);

impl Api {
    fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let mut lease = self.0.lock().unwrap();
        if head.method != Method::GET {
            *lease = serde_json::from_slice(&body).unwrap();
        }
        let code = if lease.is_null() { 404 } else { 200 };
        let body = Body::from(lease.to_string().into_bytes());
        Response::builder().status(code).body(body).unwrap()
    }

    fn holder(&self) -> String {
        let lease = self.0.lock().unwrap();
        let holder = lease["spec"]["holderIdentity"].as_str();
        holder.unwrap_or_default().to_owned()
    }

    /// Another process takes the lease.
    fn take(&self) {
        self.0.lock().unwrap()["spec"]["holderIdentity"] = json!("other");
    }
}

/// Controllers that end when they are stopped, and then need a second for their last write.
fn start(api: &Api) -> (Supervisor, Controllers, [Arc<AtomicU32>; 2]) {
    let mut supervisor = Supervisor::new(api.client());
    let controllers = Controllers::elect(&mut supervisor, api.client());
    let starts = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    for (name, count) in ["one", "two"].into_iter().zip(&starts) {
        let (count, api) = (count.clone(), api.clone());
        controllers.start(&mut supervisor, name, move |_, setup| {
            count.fetch_add(1, Ordering::SeqCst);
            let api = api.clone();
            async move {
                setup.stop.cancelled().await;
                sleep(Duration::from_secs(1)).await;
                assert_eq!(api.holder(), IDENTITY, "it is released afterwards");
                Ok(())
            }
        });
    }
    (supervisor, controllers, starts)
}

#[tokio::test(start_paused = true)]
async fn a_takeover_fences_and_restarts_all_controllers_of_the_process() {
    let api = Api::default();
    let (supervisor, controllers, starts) = start(&api);
    let check = |leads: bool, expected: u32| {
        assert_eq!(controllers.setup.fence.is_open(), leads);
        for count in &starts {
            assert_eq!(count.load(Ordering::SeqCst), expected);
        }
    };
    let running = supervisor.run();
    sleep(Duration::from_mins(1)).await;
    check(true, 1);
    api.take();
    sleep(Duration::from_secs(10)).await;
    check(false, 2);
    sleep(TIMING.duration).await;
    // The other process did not renew it.
    check(true, 2);
    assert_eq!(api.holder(), IDENTITY);
    running.stop(Duration::from_secs(20)).await;
    assert_eq!(api.holder(), "");
    assert!(!controllers.setup.fence.is_open());
}
