//! What is done for those who may ask: finds the pod they mean, and brings them together.

use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use jiff::Timestamp;
use kennel_core::pod::Run;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::{self, Answer, Refusal};
use super::logs::{self, Log, Options};
use super::pages;
use super::route::{Container, Query, Route};
use super::server::Rooms;
use super::stream::{self, Begin, Ports, Upgrade, Use};
use crate::pods::CachedPod;
use crate::runtime::{Attachment, ExecRequest};

/// Pieces of a log that wait to be read.
const PIECES: usize = 4;

/// See the [module](self).
pub(super) struct Desk {
    rooms: Rooms,
    /// Streams that outlive the request that asked for them.
    streams: TaskTracker,
    stop: CancellationToken,
}

impl Desk {
    pub(super) fn new(rooms: Rooms, stop: CancellationToken) -> Self {
        Self {
            rooms,
            streams: TaskTracker::new(),
            stop,
        }
    }

    /// Waits for all streams to end, when told to stop.
    pub(super) async fn ended(&self) {
        self.streams.close();
        self.streams.wait().await;
    }

    /// Answers.
    pub(super) async fn serve(&self, route: Route, request: Request<Incoming>) -> Answer {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let answer = match route {
            Route::Healthz => Ok(answer::text("ok")),
            Route::Pods => Ok(answer::json(&pages::pods(&self.rooms.directory))),
            Route::Metrics => Ok(answer::text(pages::metrics(&self.rooms))),
            Route::Summary => pages::summary(&self.rooms).await,
            Route::Logs(container) => self.logs(&container, &query).await,
            Route::Exec(container) => self.exec(&container, &query, request),
            Route::Attach(container) => self.attach(&container, &query, request),
            Route::PortForward {
                namespace,
                pod,
                uid,
            } => self.port_forward(&namespace, &pod, &uid, request),
        };
        answer.unwrap_or_else(Answer::from)
    }

    fn pod(&self, namespace: &str, name: &str, uid: &str) -> Option<Arc<CachedPod>> {
        let found = self.rooms.directory.by_name(namespace, name);
        let meant = |view: &Arc<CachedPod>| uid.is_empty() || view.pod.id.uid == uid;
        found
            .filter(meant)
            .or_else(|| self.rooms.directory.by_uid(uid))
            .filter(|view| view.pod.id.name == name && view.pod.id.namespace == namespace)
    }

    /// The run of a container that one can enter.
    fn running(&self, container: &Container) -> Result<Run, Refusal> {
        let view = self.pod(&container.namespace, &container.pod, &container.uid);
        let view = view.ok_or_else(|| Refusal::not_found("pod does not exist"))?;
        let run = view.observed.latest(&container.name);
        let run = run.filter(|run| run.is_running()).cloned();
        run.ok_or_else(|| Refusal::internal(format!("container not found ({:?})", container.name)))
    }

    async fn logs(&self, container: &Container, query: &Query) -> Result<Answer, Refusal> {
        let Container {
            namespace,
            pod,
            uid,
            name,
        } = container;
        let view = self.pod(namespace, pod, uid);
        let view = view.ok_or_else(|| Refusal::not_found(format!("pod {pod:?} does not exist")))?;
        if view.pod.raw_container(name).is_none() {
            let text = format!("container {name:?} not found in pod {pod:?}");
            return Err(Refusal::not_found(text));
        }
        let options = Options::parse(query, Timestamp::now())?;
        let run = logs::which(&view, name, options.previous).map_err(Refusal::bad)?;
        let path = logs::path(&self.rooms.settings.paths, &view.pod.id, name, run.attempt);
        let (sender, queue) = mpsc::channel(PIECES);
        let (directory, uid, id) = (
            Arc::clone(&self.rooms.directory),
            view.pod.id.uid.clone(),
            run.id.clone(),
        );
        let runs = move || {
            let view = directory.by_uid(&uid);
            view.is_some_and(|view| view.observed.alive().any(|run| run.id == id))
        };
        let log = Log::open(path, options).await;
        let log = log.map_err(|error| Refusal::internal(error.to_string()))?;
        self.until_stopped(async move {
            if let Err(error) = log.send(runs, sender).await {
                tracing::debug!(%error, "a log cannot be read");
            }
        });
        let pieces = futures_util::stream::unfold(queue, |mut queue| async move {
            let piece = queue.recv().await?;
            Some((Ok(Frame::data(piece)), queue))
        });
        Ok(answer::flowing(StreamBody::new(pieces).boxed()))
    }

    fn exec(
        &self,
        container: &Container,
        query: &Query,
        request: Request<Incoming>,
    ) -> Result<Answer, Refusal> {
        let streams = attachment(query)?;
        let id = self.running(container)?.id;
        let command = query.all("command").map(str::to_owned).collect();
        let asked = ExecRequest { command, streams };
        let runtime = Arc::clone(&self.rooms.runtime);
        let begin = async move { runtime.exec_session(&id, &asked).await };
        self.command(request, streams, Box::pin(begin))
    }

    fn attach(
        &self,
        container: &Container,
        query: &Query,
        request: Request<Incoming>,
    ) -> Result<Answer, Refusal> {
        let streams = attachment(query)?;
        let id = self.running(container)?.id;
        let runtime = Arc::clone(&self.rooms.runtime);
        let begin = async move { runtime.attach(&id, streams).await };
        self.command(request, streams, Box::pin(begin))
    }

    fn command(
        &self,
        request: Request<Incoming>,
        streams: Attachment,
        begin: Begin,
    ) -> Result<Answer, Refusal> {
        let upgrade = Upgrade::agree(request.headers(), Use::Command)?;
        let answer = upgrade.answer();
        let upgraded = hyper::upgrade::on(request);
        self.until_stopped(stream::command(upgraded, upgrade, streams, begin));
        Ok(answer)
    }

    fn port_forward(
        &self,
        namespace: &str,
        pod: &str,
        uid: &str,
        request: Request<Incoming>,
    ) -> Result<Answer, Refusal> {
        let view = self.pod(namespace, pod, uid);
        let view = view.ok_or_else(|| Refusal::not_found("pod does not exist"))?;
        let sandbox = view
            .observed
            .sandbox
            .as_ref()
            .filter(|sandbox| sandbox.ready);
        let sandbox =
            sandbox.ok_or_else(|| Refusal::internal(format!("pod not found ({pod:?})")))?;
        let ports = Ports {
            runtime: Arc::clone(&self.rooms.runtime),
            sandbox: sandbox.id.clone(),
            pod: format!("{pod}_{namespace}"),
            uid: view.pod.id.uid.clone(),
        };
        let upgrade = Upgrade::agree(request.headers(), Use::Forward)?;
        let answer = upgrade.answer();
        let upgraded = hyper::upgrade::on(request);
        self.until_stopped(stream::ports(upgraded, upgrade, ports));
        Ok(answer)
    }

    fn until_stopped(&self, streams: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.streams.spawn(async move {
            tokio::select! {
                () = streams => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// Which streams are asked for. With a terminal, errors go where the rest goes.
fn attachment(query: &Query) -> Result<Attachment, Refusal> {
    let tty = query.is_set(&["tty"]);
    let streams = Attachment {
        stdin: query.is_set(&["input", "stdin"]),
        stdout: query.is_set(&["output", "stdout"]),
        stderr: query.is_set(&["error", "stderr"]) && !tty,
        tty,
    };
    if !streams.stdin && !streams.stdout && !streams.stderr {
        let text = "you must specify at least 1 of stdin, stdout, stderr";
        return Err(Refusal::bad(text));
    }
    Ok(streams)
}
