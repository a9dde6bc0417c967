//! The log of a daemon's container: its last lines, and what follows.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{AsyncRead, AsyncReadExt as _, FutureExt as _};
use http::Response;
use kennel_inspect::lists::list;
use kennel_inspect::snapshot;
use kennel_types::{Pod, Timestamp};
use kube::Client;
use kube::api::{LogParams, Request};
use serde::de::Deserialize as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lines::Splitter;
use crate::app::App;
use crate::failure::Failure;
use crate::protocol::{Lines, LogEnd, LogSource};
use crate::reply::Body;
use crate::route::{Query, SetName};
use crate::streams::sse::{self, INTERVAL, Messages, Source};

/// Last lines without `?tail=`, and at most.
const TAIL: i64 = 200;
const TAIL_MAX: i64 = 5000;
/// Lines of one message; the rest comes with the next.
const LINES_MAX: usize = 500;
const CHUNK_BYTES: usize = 16 * 1024;

/// The API server has to reach the node, which may be down.
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// Longer than any stream waits for a change.
const NEVER: Duration = Duration::from_hours(1);

/// The container, and how much of its log.
struct Wanted {
    set: SetName,
    node: String,
    container: Option<String>,
    previous: bool,
    tail: i64,
    follow: bool,
}

pub(crate) fn logs(
    app: &Arc<App>,
    seat: OwnedSemaphorePermit,
    set: SetName,
    node: String,
    query: &Query,
    stop: CancellationToken,
) -> Result<Response<Body>, Failure> {
    let tail = match query.get("tail").map(str::parse::<i64>) {
        None => TAIL,
        Some(Ok(tail)) if (0..=TAIL_MAX).contains(&tail) => tail,
        Some(_) => return Err(Failure::bad_request(format!("tail is 0 to {TAIL_MAX}"))),
    };
    let wanted = Wanted {
        set,
        node,
        container: query.get("container").map(str::to_owned),
        previous: query.is_set("previous"),
        tail,
        follow: query.is_set("follow"),
    };
    let log = Log {
        client: app.client.clone(),
        wanted,
        open: None,
    };
    Ok(sse::response(log, seat, stop))
}

/// A stream of lines.
struct Log {
    client: Client,
    wanted: Wanted,
    open: Option<Open>,
}

struct Open {
    reader: Pin<Box<dyn AsyncRead + Send>>,
    splitter: Splitter,
    chunk: Vec<u8>,
    /// The log has no more.
    ended: Option<LogEnd>,
}

impl Source for Log {
    async fn collect(&mut self, messages: &mut Messages) -> Option<Instant> {
        if self.open.is_none() {
            match open(&self.client, &self.wanted).await {
                Ok((source, open)) => {
                    self.open = Some(open);
                    let lines = Vec::new();
                    let source = Some(source);
                    messages.add("lines", &Lines { source, lines });
                }
                Err(failure) => {
                    let why = Some(failure.message);
                    messages.add("end", &LogEnd { why });
                    return None;
                }
            }
            return Some(Instant::now());
        }
        let open = self.open.as_mut()?;
        let lines = open.splitter.take(LINES_MAX);
        if !lines.is_empty() {
            let source = None;
            messages.add("lines", &Lines { source, lines });
        }
        let now = Instant::now();
        match open.ended.take_if(|_| open.splitter.is_empty()) {
            Some(end) => {
                messages.add("end", &end);
                None
            }
            None if open.splitter.is_empty() => Some(now + NEVER),
            None => Some(now + INTERVAL),
        }
    }

    async fn changed(&mut self) {
        match &mut self.open {
            Some(open) if open.ended.is_none() => open.read().await,
            _ => std::future::pending().await,
        }
    }
}

impl Open {
    /// Reads what has come: at least something, and no more than one message has.
    async fn read(&mut self) {
        let mut read = self.reader.read(&mut self.chunk).await;
        loop {
            match read {
                Ok(0) => {
                    self.splitter.finish();
                    self.ended = Some(LogEnd { why: None });
                }
                Ok(length) => self.splitter.add(&self.chunk[..length]),
                Err(error) => {
                    self.splitter.finish();
                    let why = Some(format!("the log broke off: {error}"));
                    self.ended = Some(LogEnd { why });
                }
            }
            if self.ended.is_some() || self.splitter.len() >= LINES_MAX {
                return;
            }
            match self.reader.read(&mut self.chunk).now_or_never() {
                Some(more) => read = more,
                None => return,
            }
        }
    }
}

async fn open(client: &Client, wanted: &Wanted) -> Result<(LogSource, Open), Failure> {
    let SetName { namespace, .. } = &wanted.set;
    let pod = find_pod(client, wanted).await?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let containers: Vec<String> = containers.map(|container| container.name.clone()).collect();
    let container = match &wanted.container {
        Some(container) if containers.contains(container) => container.clone(),
        Some(container) => {
            return Err(Failure::not_found(format!(
                "pod {name} has no container {container}"
            )));
        }
        None => pod
            .spec
            .containers
            .first()
            .map(|first| first.name.clone())
            .unwrap_or_default(),
    };
    let params = LogParams {
        container: Some(container.clone()),
        follow: wanted.follow,
        previous: wanted.previous,
        tail_lines: Some(wanted.tail),
        ..LogParams::default()
    };
    let request = Request::new(format!("/api/v1/namespaces/{namespace}/pods")).logs(&name, &params);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let reader = tokio::time::timeout(OPEN_TIMEOUT, client.request_stream(request)).await;
    let late = || Failure::upstream("the node does not answer in time");
    let reader = reader.map_err(|_| late())??;
    let source = LogSource {
        pod: name,
        container,
        containers,
    };
    let open = Open {
        reader: Box::pin(reader),
        splitter: Splitter::default(),
        chunk: vec![0; CHUNK_BYTES],
        ended: None,
    };
    Ok((source, open))
}

/// The DaemonSet's newest pod on the node.
async fn find_pod(client: &Client, wanted: &Wanted) -> Result<Pod, Failure> {
    let SetName { namespace, name } = &wanted.set;
    let node = &wanted.node;
    let set = snapshot::daemon_set(client, namespace, name).await?;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let selector = set.selector.to_string();
    let fields = format!("spec.nodeName={node}");
    let pods = list(client, &path, Some(&selector), Some(&fields)).await?;
    let pods = pods.iter().filter_map(|pod| <Pod>::deserialize(pod).ok());
    let owned = pods.filter(|pod| {
        let owner = kennel_types::meta::controller(&pod.metadata);
        owner.is_some_and(|owner| owner.uid == *set.uid)
    });
    let newest = owned.max_by_key(|pod| {
        let created = pod
            .metadata
            .creation_timestamp
            .as_ref()
            .map(Timestamp::from);
        (pod.metadata.deletion_timestamp.is_none(), created)
    });
    newest.ok_or_else(|| {
        Failure::not_found(format!(
            "DaemonSet {namespace}/{name} has no pod on node {node}"
        ))
    })
}
