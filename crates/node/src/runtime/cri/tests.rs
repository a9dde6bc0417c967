//! The CRI runtime against a fake containerd, for answers that a real one gives by chance.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kennel_core::pod::Exit;
use prost::Message;
use tokio::net::UnixListener;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::api::Call;
use super::{Cri, api, labels};
use crate::runtime::{PodId, Runtime};

/// Generous, for busy machines.
const DEADLINE: Duration = Duration::from_mins(1);

/// One container, in a sandbox of its own. No events: lists are compared every second.
#[derive(Debug)]
struct FakeContainerd {
    data: String,
    status: api::ContainerStatus,
    /// How often the status was asked for.
    asked: usize,
}

fn pod() -> PodId {
    PodId {
        namespace: "default".to_owned(),
        name: "greedy".to_owned(),
        uid: "uid-of-greedy".to_owned(),
    }
}

impl FakeContainerd {
    fn start(dir: &Path) -> Arc<Mutex<Self>> {
        let running = api::ContainerStatus {
            state: api::ContainerState::Running as i32,
            started_at: 1,
            ..Default::default()
        };
        let fake = Arc::new(Mutex::new(Self {
            data: dir.display().to_string(),
            status: running,
            asked: 0,
        }));
        let listener = UnixListener::bind(dir.join("containerd.sock")).unwrap();
        let served = Arc::clone(&fake);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let fake = Arc::clone(&served);
                let service = hyper::service::service_fn(move |request| {
                    let fake = Arc::clone(&fake);
                    async move { answer(&fake, request).await }
                });
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
            }
        });
        fake
    }

    fn sandbox(&self) -> api::PodSandbox {
        api::PodSandbox {
            id: "sandbox".to_owned(),
            metadata: Some(api::PodSandboxMetadata {
                name: pod().name,
                uid: pod().uid,
                namespace: pod().namespace,
                attempt: 0,
            }),
            annotations: BTreeMap::from([(labels::DATA_DIR.to_owned(), self.data.clone())]),
            ..Default::default()
        }
    }

    fn container(&self) -> api::Container {
        api::Container {
            id: "container".to_owned(),
            pod_sandbox_id: "sandbox".to_owned(),
            state: self.status.state,
            labels: labels::of(&pod()),
            ..Default::default()
        }
    }

    /// The answer to a method; `None` if it is not implemented.
    fn respond(&mut self, path: &str) -> Option<Vec<u8>> {
        if path == api::ListPodSandboxRequest::PATH {
            let items = vec![self.sandbox()];
            Some(api::ListPodSandboxResponse { items }.encode_to_vec())
        } else if path == api::ListContainersRequest::PATH {
            let containers = vec![self.container()];
            Some(api::ListContainersResponse { containers }.encode_to_vec())
        } else if path == api::PodSandboxStatusRequest::PATH {
            Some(api::PodSandboxStatusResponse::default().encode_to_vec())
        } else if path == api::ContainerStatusRequest::PATH {
            self.asked += 1;
            let status = Some(self.status.clone());
            Some(api::ContainerStatusResponse { status }.encode_to_vec())
        } else {
            None
        }
    }
}

type Answer = Result<http::Response<BoxBody<Bytes, hyper::Error>>, hyper::Error>;

async fn answer(fake: &Mutex<FakeContainerd>, request: http::Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    let response = http::Response::builder().header("content-type", "application/grpc");
    let Some(message) = fake.lock().unwrap().respond(&path) else {
        let body = Full::new(Bytes::new()).map_err(|never| match never {});
        let unimplemented = response.header("grpc-status", "12");
        return Ok(unimplemented.body(body.boxed()).unwrap());
    };
    request.into_body().collect().await?;
    let mut bytes = vec![0];
    bytes.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    bytes.extend(message);
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let frames = [Ok(Frame::data(bytes.into())), Ok(Frame::trailers(trailers))];
    let body = StreamBody::new(futures_util::stream::iter(frames));
    Ok(response.body(body.boxed()).unwrap())
}

async fn exit(cri: &Cri) -> Option<Exit> {
    let found = cri.inspect(&pod().uid).await.unwrap().expect("the pod");
    found.observed.runs[0].exit().cloned()
}

/// Inspects only after a change, as a pod's worker does, until the container has exited for this reason.
async fn until_reason(cri: &Cri, changes: &mut Receiver<String>, reason: &str) -> Exit {
    let reading = async {
        loop {
            match exit(cri).await {
                Some(exit) if exit.reason == reason => return exit,
                _ => assert_eq!(changes.recv().await, Some(pod().uid)),
            }
        }
    };
    let read = timeout(DEADLINE, reading).await;
    read.unwrap_or_else(|_| panic!("no {reason} in time"))
}

#[tokio::test]
async fn a_corrected_reason_of_an_exit_is_read_and_then_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeContainerd::start(dir.path());
    let cri = Cri::new(&dir.path().join("containerd.sock"), dir.path());
    let mut changes = cri.changes();
    assert_eq!(exit(&cri).await, None);

    let set = |reason: &str| {
        fake.lock().unwrap().status = api::ContainerStatus {
            state: api::ContainerState::Exited as i32,
            started_at: 1,
            finished_at: 2,
            exit_code: 137,
            reason: reason.to_owned(),
            ..Default::default()
        };
    };
    set("Error");
    assert_eq!(until_reason(&cri, &mut changes, "Error").await.code, 137);
    let is_reported = async |changes: &mut Receiver<String>| {
        let reported = timeout(DEADLINE, changes.recv()).await;
        assert_eq!(reported.ok().flatten(), Some(pod().uid));
    };
    is_reported(&mut changes).await;
    // containerd has handled the kernel's notice, and tells nobody.
    set("OOMKilled");
    is_reported(&mut changes).await;
    let corrected = until_reason(&cri, &mut changes, "OOMKilled").await;
    assert_eq!(corrected.code, 137);

    // Long after the exit, nothing is asked any more, nor is the pod reported.
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(10)).await;
    tokio::time::resume();
    exit(&cri).await;
    while timeout(Duration::from_secs(2), changes.recv())
        .await
        .is_ok()
    {}
    let asked = fake.lock().unwrap().asked;
    for _ in 0..5 {
        exit(&cri).await;
    }
    assert_eq!(fake.lock().unwrap().asked, asked);
    assert!(asked < 20, "{asked} reads of one exit");
}
