//! From a request to its response: access first, then what the path asks for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::failure::Failure;
use crate::protocol::Act;
use crate::reply::{self, Body};
use crate::route::{Query, Route, SetName};
use crate::server::Settings;
use crate::watching::Watching;
use crate::{actions, answers, page, streams};

/// Streams of all pages: each costs a few bytes per node.
const STREAMS_MAX: usize = 40;
/// Reads of whole lists at once, for explanations and previews: each holds all pods of a DaemonSet.
const READS_MAX: usize = 2;
/// How long a single answer may take, waiting for its turn included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// A change is a verb and a reason.
const CHANGE_BYTES_MAX: usize = 8 * 1024;

/// See the [module](self).
pub(crate) struct App {
    pub(crate) access: Access,
    pub(crate) watching: Watching,
    pub(crate) client: Client,
    pub(crate) settings: PageSettings,
    streams: Arc<Semaphore>,
    reads: Semaphore,
}

/// What the page shows of the settings.
#[derive(Clone, Debug)]
pub(crate) struct PageSettings {
    pub(crate) version: String,
    pub(crate) server: String,
    pub(crate) context: Option<String>,
    pub(crate) allow_changes: bool,
}

impl App {
    pub(crate) fn new(settings: Settings, access: Access) -> Self {
        let client = settings.client;
        Self {
            access,
            watching: Watching::new(client.clone()),
            client,
            settings: PageSettings {
                version: settings.version,
                server: settings.server,
                context: settings.context,
                allow_changes: settings.allow_changes,
            },
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            reads: Semaphore::new(READS_MAX),
        }
    }

    pub(crate) async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        stop: CancellationToken,
    ) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let is_head = request.method() == Method::HEAD;
        let response = if path == "/api" || path.starts_with("/api/") {
            self.api(request, stop).await
        } else {
            self.file(&request)
        };
        let mut response = response.unwrap_or_else(|failure| {
            tracing::debug!(path, status = failure.status.as_u16(), "{failure}");
            reply::failed(&failure)
        });
        reply::secure(response.headers_mut());
        if is_head {
            *response.body_mut() = reply::full(Bytes::new());
        }
        response
    }

    fn file(&self, request: &Request<Incoming>) -> Result<Response<Body>, Failure> {
        let (path, headers) = (request.uri().path(), request.headers());
        self.access.check_host(headers)?;
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Failure::method());
        }
        let is_document = page::is_document(path);
        Access::check_file(headers, is_document)?;
        let query = Query::parse(request.uri().query());
        if let Some(token) = query.get("token").filter(|_| is_document) {
            let cookie = self.access.open(token);
            let cookie = cookie.map_err(|error| Failure::upstream(error.to_string()))?;
            return Ok(reply::to_page(cookie.as_deref()));
        }
        let file = page::response(path, headers);
        file.ok_or_else(|| Failure::not_found(format!("there is no {path}")))
    }

    async fn api(
        self: Arc<Self>,
        request: Request<Incoming>,
        stop: CancellationToken,
    ) -> Result<Response<Body>, Failure> {
        let (method, headers) = (request.method(), request.headers());
        self.access.check_host(headers)?;
        self.access.check_api(method, headers)?;
        let route = Route::parse(request.uri().path())?;
        let expected = if route.is_change() {
            Method::POST
        } else {
            Method::GET
        };
        if *method != expected {
            return Err(Failure::method());
        }
        let query = Query::parse(request.uri().query());
        match route {
            Route::Overview => streams::overview(&self, self.stream()?, stop).await,
            Route::Stream(set) => {
                streams::daemon_set(&self, self.stream()?, set, &query, stop).await
            }
            Route::Logs(set, node) => answers::logs(&self, self.stream()?, set, node, &query, stop),
            route => {
                let answer = self.answer(route, request, &query);
                let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
                let late = || Failure::upstream("the API server does not answer in time");
                answer.unwrap_or_else(|_| Err(late()))
            }
        }
    }

    async fn answer(
        &self,
        route: Route,
        request: Request<Incoming>,
        query: &Query,
    ) -> Result<Response<Body>, Failure> {
        let client = &self.client;
        Ok(match route {
            Route::Session => {
                // The page asks for a stream next.
                let _watches = self.watching.watches().await?;
                reply::json(&answers::session(&self.settings))
            }
            Route::History(set) => reply::json(&answers::history(client, &set).await?),
            Route::Diff(set) => reply::json(&answers::diff(client, &set, query).await?),
            Route::Node(node) => reply::json(&answers::node(client, &node).await?),
            Route::Why(set, node) => {
                let _turn = self.read().await?;
                reply::json(&answers::why(client, &set, &node).await?)
            }
            Route::Preview(set) => {
                let verb = actions::verb(query)?;
                let _turn = self.read().await?;
                reply::json(&actions::preview(client, &set, verb).await?)
            }
            Route::Act(set) => self.act(&set, request).await?,
            Route::Overview | Route::Stream(_) | Route::Logs(..) => return Err(Failure::method()),
        })
    }

    async fn act(
        &self,
        set: &SetName,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Failure> {
        if !self.settings.allow_changes {
            return Err(Failure::read_only());
        }
        let act = change(request).await?;
        let _turn = self.read().await?;
        Ok(reply::json(&actions::act(&self.client, set, &act).await?))
    }

    fn stream(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let seat = Arc::clone(&self.streams).try_acquire_owned();
        seat.map_err(|_| Failure::too_many("streams"))
    }

    async fn read(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Failure> {
        let permit = self.reads.acquire().await;
        permit.map_err(|_| Failure::too_many("requests"))
    }
}

/// Reads the body of a change. A media type that no form can send makes browsers ask before other sites' requests.
async fn change(request: Request<Incoming>) -> Result<Act, Failure> {
    let media_type = request.headers().get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|value| value.split(';').next());
    if !essence.is_some_and(|value| value.trim().eq_ignore_ascii_case("application/json")) {
        return Err(Failure::media_type());
    }
    let body = Limited::new(request.into_body(), CHANGE_BYTES_MAX);
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(Failure::too_large()),
        Err(error) => return Err(Failure::bad_request(error.to_string())),
    };
    serde_json::from_slice(&body).map_err(|error| Failure::bad_request(error.to_string()))
}
