//! Handlers of authorised requests.

use std::collections::HashMap;
use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use kennel_client::clock;
use kennel_core::pod::Run;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::configz;
use super::container_logs::{self, Log, Options};
use super::node_endpoints;
use super::response::{self, HttpError, HttpResponse};
use super::route::{Container, Query, Route};
use super::server::ServerContext;
use super::stream::{self, PortForwarder, StreamUse, Upgrade};
use super::usage::{self, Contents, Meter};
use crate::pods::CachedPod;
use crate::runtime::{Attachment, Error, ExecRequest};

/// Chunks of a log that wait to be sent. A full channel makes the log reader wait.
const LOG_CHUNKS: usize = 4;

/// See the [module](self).
pub(super) struct Handlers {
    context: ServerContext,
    meter: Meter,
    /// Streams outlive the request that opened them.
    streams: TaskTracker,
    stop: CancellationToken,
}

impl Handlers {
    pub(super) fn new(context: ServerContext, stop: CancellationToken) -> Self {
        Self {
            context,
            meter: Meter::default(),
            streams: TaskTracker::new(),
            stop,
        }
    }

    /// Waits until all streams have ended, which they do when `stop` is cancelled.
    pub(super) async fn streams_ended(&self) {
        self.streams.close();
        self.streams.wait().await;
    }

    pub(super) async fn serve(&self, route: Route, request: Request<Incoming>) -> HttpResponse {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let response = match route {
            Route::Healthz(check) => node_endpoints::healthz(&self.context, &check, &query),
            Route::Pods => Ok(response::json(&node_endpoints::pods(
                &self.context.pod_cache,
            ))),
            Route::Metrics => Ok(response::text(node_endpoints::metrics(&self.context))),
            Route::Summary => self.summary(&query).await,
            Route::ResourceMetrics => Ok(self.resource_metrics().await),
            Route::CadvisorMetrics => self.cadvisor_metrics().await,
            Route::Configz => Ok(response::json(&configz::document(&self.context.settings))),
            Route::Logs(container) => self.logs(&container, &query).await,
            Route::Exec(container) => {
                let command = query.all("command").map(str::to_owned).collect();
                self.session(&container, Some(command), &query, request)
            }
            Route::Attach(container) => self.session(&container, None, &query, request),
            Route::PortForward {
                namespace,
                pod,
                uid,
            } => self.port_forward(&namespace, &pod, &uid, request),
        };
        response.unwrap_or_else(HttpResponse::from)
    }

    /// Usage of the machine, its pods and their containers; with `only_cpu_and_memory` without their disks.
    async fn summary(&self, query: &Query) -> Result<HttpResponse, HttpError> {
        let runtime = &*self.context.runtime;
        let internal = |error: Error| HttpError::internal(error.to_string());
        let compared = self.meter.compared(runtime).await.map_err(internal)?;
        let mut disks = HashMap::new();
        if !query.is_set(&["only_cpu_and_memory"]) {
            let measured = runtime.usage(true).await.map_err(internal)?;
            disks.extend(
                measured
                    .into_iter()
                    .filter_map(|one| Some((one.id, one.disk?))),
            );
        }
        let summary = usage::summary(&Contents {
            node: &self.context.settings.node_name,
            pods: self.context.pod_cache.all(),
            compared: &compared,
            disks,
        });
        Ok(response::json(&summary))
    }

    /// A failure is a metric, too.
    async fn resource_metrics(&self) -> HttpResponse {
        let sample = self.meter.latest(&*self.context.runtime).await;
        let sample = sample.inspect_err(|error| {
            tracing::warn!("cannot read the usage of containers: {error}");
        });
        let pods = self.context.pod_cache.all();
        response::text(usage::resource_page(sample.ok().as_deref(), &pods))
    }

    async fn cadvisor_metrics(&self) -> Result<HttpResponse, HttpError> {
        let sample = self.meter.latest(&*self.context.runtime).await;
        let sample = sample.map_err(|error| HttpError::internal(error.to_string()))?;
        let pods = self.context.pod_cache.all();
        let data = self.context.settings.paths.data.clone();
        let page = move || usage::cadvisor_page(&sample, &pods, &data);
        let page = tokio::task::spawn_blocking(page).await;
        let page = page.map_err(|error| HttpError::internal(error.to_string()))?;
        Ok(response::text(page))
    }

    fn pod(&self, namespace: &str, name: &str, uid: &str) -> Option<Arc<CachedPod>> {
        let found = self.context.pod_cache.by_name(namespace, name);
        let matches_uid = |cached: &Arc<CachedPod>| uid.is_empty() || cached.pod.id.uid == uid;
        found
            .filter(matches_uid)
            .or_else(|| self.context.pod_cache.by_uid(uid))
            .filter(|cached| cached.pod.id.name == name && cached.pod.id.namespace == namespace)
    }

    /// The current run of a container.
    fn running(&self, container: &Container) -> Result<Run, HttpError> {
        let cached = self.pod(&container.namespace, &container.pod, &container.uid);
        let cached = cached.ok_or_else(|| HttpError::not_found("pod does not exist"))?;
        let run = cached.observed.latest(&container.name);
        let run = run.filter(|run| run.is_running()).cloned();
        run.ok_or_else(|| {
            HttpError::internal(format!("container not found ({:?})", container.name))
        })
    }

    async fn logs(&self, container: &Container, query: &Query) -> Result<HttpResponse, HttpError> {
        let Container {
            namespace,
            pod,
            uid,
            name,
        } = container;
        let cached = self.pod(namespace, pod, uid);
        let cached =
            cached.ok_or_else(|| HttpError::not_found(format!("pod {pod:?} does not exist")))?;
        if cached.pod.raw_container(name).is_none() {
            let text = format!("container {name:?} not found in pod {pod:?}");
            return Err(HttpError::not_found(text));
        }
        let options = Options::parse(query, clock::now())?;
        let run = container_logs::select_run(&cached, name, options.previous);
        let run = run.map_err(|error| HttpError::bad_request(error.to_string()))?;
        let path = container_logs::log_path(
            &self.context.settings.paths,
            &cached.pod.id,
            name,
            run.attempt,
        );
        let (sender, queue) = mpsc::channel(LOG_CHUNKS);
        let (pod_cache, uid, id) = (
            Arc::clone(&self.context.pod_cache),
            cached.pod.id.uid.clone(),
            run.id.clone(),
        );
        let is_running = move || {
            let cached = pod_cache.by_uid(&uid);
            cached.is_some_and(|cached| cached.observed.running().any(|run| run.id == id))
        };
        let log = Log::open(path, options).await;
        let log = log.map_err(|error| HttpError::internal(error.to_string()))?;
        self.spawn_until_stopped(async move {
            if let Err(error) = log.send(is_running, sender).await {
                tracing::debug!(%error, "reading a log failed");
            }
        });
        let chunks = futures_util::stream::unfold(queue, |mut queue| async move {
            let chunk = queue.recv().await?;
            Some((Ok(Frame::data(chunk)), queue))
        });
        Ok(response::streaming(StreamBody::new(chunks).boxed()))
    }

    /// Executes the command, or attaches to the container's streams without one.
    fn session(
        &self,
        container: &Container,
        command: Option<Vec<String>>,
        query: &Query,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, HttpError> {
        let streams = attachment(query)?;
        let id = self.running(container)?.id;
        let runtime = Arc::clone(&self.context.runtime);
        let session = async move {
            match command {
                Some(command) => {
                    let exec = ExecRequest { command, streams };
                    runtime.exec_session(&id, &exec).await
                }
                None => runtime.attach(&id, streams).await,
            }
        };
        let upgrade = Upgrade::negotiate(request.headers(), StreamUse::Session)?;
        let response = upgrade.response();
        let upgraded = hyper::upgrade::on(request);
        let session = Box::pin(session);
        self.spawn_until_stopped(stream::serve_session(upgraded, upgrade, streams, session));
        Ok(response)
    }

    fn port_forward(
        &self,
        namespace: &str,
        pod: &str,
        uid: &str,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, HttpError> {
        let cached = self.pod(namespace, pod, uid);
        let cached = cached.ok_or_else(|| HttpError::not_found("pod does not exist"))?;
        let sandbox = cached
            .observed
            .sandbox
            .as_ref()
            .filter(|sandbox| sandbox.ready);
        let sandbox =
            sandbox.ok_or_else(|| HttpError::internal(format!("pod not found ({pod:?})")))?;
        let forwarder = PortForwarder {
            runtime: Arc::clone(&self.context.runtime),
            sandbox: sandbox.id.clone(),
            pod: format!("{pod}_{namespace}"),
            uid: cached.pod.id.uid.clone(),
        };
        let upgrade = Upgrade::negotiate(request.headers(), StreamUse::PortForward)?;
        let response = upgrade.response();
        let upgraded = hyper::upgrade::on(request);
        self.spawn_until_stopped(stream::serve_port_forward(upgraded, upgrade, forwarder));
        Ok(response)
    }

    fn spawn_until_stopped(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.streams.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }
}

/// The requested streams. With a terminal, stderr goes to stdout.
fn attachment(query: &Query) -> Result<Attachment, HttpError> {
    let tty = query.is_set(&["tty"]);
    let streams = Attachment {
        stdin: query.is_set(&["input", "stdin"]),
        stdout: query.is_set(&["output", "stdout"]),
        stderr: query.is_set(&["error", "stderr"]) && !tty,
        tty,
    };
    if !streams.stdin && !streams.stdout && !streams.stderr {
        let text = "you must specify at least 1 of stdin, stdout, stderr";
        return Err(HttpError::bad_request(text));
    }
    Ok(streams)
}
