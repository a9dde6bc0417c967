//! The API as one value: what all requests share, and the way of a request through it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, header};
use kennel_core::selector::FieldSelector;
use kennel_store::Store;
use kennel_types::Verb;
use serde_json::json;

use crate::audit::{Audit, Note};
use crate::authenticate::{Authenticator, Credentials, impersonate, issuer};
use crate::authorize::{Attributes, Authorizer};
use crate::discovery::{self, Document, Page};
use crate::http::body::Body;
use crate::http::flight::Flight;
use crate::http::switch::Switch;
use crate::metrics::Metrics;
use crate::object::Head;
use crate::openapi;
use crate::request::accept;
use crate::request::path::{self, Route};
use crate::request::query::Query;
use crate::request::{Caller, User};
use crate::status::{ApiError, Result};
use crate::verbs::connect::{self, Agents, Visit};
use crate::verbs::{self, Call, Reply};
use crate::watch::Hubs;

/// What the API needs to know about the world it is served in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The certificate authority's certificate, as PEM: what pods trust.
    pub ca_pem: String,
    /// The address clients reach this server at, `host:port`.
    pub address: std::net::SocketAddr,
    /// Where cluster IPs come from.
    pub service_cidr: crate::admit::service::Cidr,
    /// Where requests that change something leave a line.
    pub audit: Arc<Audit>,
    /// How long an event is kept after it was last written.
    pub event_ttl: std::time::Duration,
    /// The way to nodes' agents.
    pub agents: Agents,
}

/// A request that was let in, before its body is read.
pub(crate) struct Entry {
    pub(crate) user: User,
    pub(crate) query: Query,
    pub(crate) route: Route,
    pub(crate) verb: Verb<'static>,
    pub(crate) parts: Parts,
    /// The way out of HTTP, if the request asks for one.
    pub(crate) switch: Option<Box<Switch>>,
}

/// The API.
pub struct Api {
    pub(crate) store: Arc<dyn Store<Head>>,
    pub(crate) hubs: Hubs,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) flight: Arc<Flight>,
    pub(crate) authenticator: Authenticator,
    pub(crate) authorizer: Authorizer,
    /// Held while a service is written: cluster IPs must be handed out one after the other.
    pub(crate) services: tokio::sync::Mutex<()>,
}

impl Api {
    /// An API over a store. Call within a runtime: it starts the tasks that feed the watches.
    pub(crate) fn new(
        store: Arc<dyn Store<Head>>,
        credentials: Credentials,
        settings: Settings,
    ) -> Arc<Self> {
        let hubs = Hubs::new(store.revision());
        hubs.start(&store);
        let authenticator = Authenticator::new(Arc::clone(&store), credentials);
        Arc::new(Self {
            authorizer: Authorizer::new(&store),
            store,
            hubs,
            settings,
            metrics: Metrics::default(),
            flight: Arc::default(),
            authenticator,
            services: tokio::sync::Mutex::default(),
        })
    }

    /// From now on, `/metrics` also shows what this says: the numbers of others in the same process.
    pub fn also_show(&self, others: impl Fn() -> String + Send + Sync + 'static) {
        self.metrics.also(Box::new(others));
    }

    /// Ends all watches and refuses new ones.
    pub fn end_watches(&self) {
        self.hubs.close();
    }

    /// Who sends a request. Known before anything else, so that a refusal has a name to it.
    pub(crate) fn identify(&self, parts: &Parts, caller: &Caller) -> Result<User> {
        self.authenticator.user(caller, &parts.headers)
    }

    /// Lets a request in: what it asks for, and whether this user may ask that. Needs no body, so that
    /// strangers are turned away before theirs take up memory.
    pub(crate) fn enter(&self, parts: Parts, user: User, note: &mut Note) -> Result<Entry> {
        // Who has shown nothing is asked to; who has, and acts as somebody who has not, is refused.
        let is_stranger = user.is_anonymous();
        let refused = |error: ApiError| match error.code {
            403 if is_stranger => ApiError::unauthorized(),
            _ => error,
        };
        let acting = impersonate::asked(&self.authorizer, user, &parts.headers).map_err(refused);
        note.judged(&acting, String::new);
        let user = acting?;
        note.known(&user);
        let query = Query::parse(parts.uri.query());
        let (method, path) = (&parts.method, parts.uri.path());
        let route = path::parse(path);
        let watching = *method == Method::GET && query.flag("watch").unwrap_or_default();
        // One that cannot be read narrows nothing; the verb itself says what is wrong with it.
        let fields = query.get("fieldSelector");
        let fields = fields.and_then(|text| FieldSelector::parse(text).ok());
        let asked = Attributes::of(method, route.as_ref(), path, watching, fields.as_ref());
        let allowed = self.authorizer.check(&user, &asked).map_err(refused);
        note.judged(&allowed, || self.authorizer.verdict(&user, &asked).reason);
        allowed?;
        let route = route.ok_or_else(ApiError::no_such_resource)?;
        let verb = route.verb(method, watching);
        Ok(Entry {
            user,
            query,
            route,
            verb,
            parts,
            switch: None,
        })
    }

    /// Carries out a request that was let in.
    pub(crate) async fn serve(self: &Arc<Self>, entry: Entry, body: Bytes) -> Response<Body> {
        let Entry {
            user,
            query,
            route,
            verb,
            parts,
            switch,
        } = entry;
        let pretty = wants_pretty(&query, parts.headers.get(header::USER_AGENT));
        let call = Call {
            user,
            headers: parts.headers,
            query,
            body,
        };
        let refused = |error: ApiError| respond(Reply::from(&error), pretty);
        let mut response = match route {
            Route::Objects(place) if connect::leads_out(&place) => {
                let visit = Visit {
                    api: self,
                    call: &call,
                    place: &place,
                    verb,
                    method: &parts.method,
                    uri: &parts.uri,
                };
                // Few requests go this way, and what they need is large: the others do not carry it along.
                let answer = Box::pin(connect::serve(visit, switch)).await;
                answer.unwrap_or_else(refused)
            }
            route => {
                let request = (&parts.method, parts.uri.path());
                let reply = self.route(request, route, verb, &call).await;
                reply.map_or_else(refused, |reply| respond(reply, pretty))
            }
        };
        if parts.method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        response
    }

    async fn route(
        self: &Arc<Self>,
        (method, path): (&Method, &str),
        route: Route,
        verb: Verb<'_>,
        call: &Call,
    ) -> Result<Reply> {
        call.query.flag("watch")?;
        let reading = matches!(*method, Method::GET | Method::HEAD);
        match route {
            Route::Objects(place) => verbs::objects(self, call, &place, verb).await,
            Route::Empty(vacant) => {
                let name = vacant.name.as_deref();
                verbs::empty(self, call, vacant.collection, name, verb)
            }
            Route::Unserved(_) => Err(ApiError::no_such_resource()),
            Route::Posted(row, namespace) if *method == Method::POST => {
                verbs::posted(self, call, row, namespace.as_deref()).await
            }
            Route::Posted(row, _) => Err(ApiError::method_not_allowed(row.group, row.plural, verb)),
            _ if !reading => Err(ApiError::method_not_allowed("", path, method.as_str())),
            Route::Health(check) => health(&check, call),
            Route::Metrics => Ok(self.metrics.reply(self)),
            Route::Issuer => Ok(issuer::document(self.settings.address)),
            Route::IssuerKeys => Ok(issuer::keys(self.authenticator.keys())),
            Route::Root => Ok(Reply::value(200, &json!({"paths": discovery_paths()}))),
            other => discover(self, &other, call),
        }
    }
}

fn health(check: &str, call: &Call) -> Result<Reply> {
    if !matches!(check, "" | "ping" | "store" | "etcd") {
        return Err(ApiError::no_such_resource());
    }
    // Anybody may ask: so it says that the store works, and not how much is written to it.
    let text = if call.query.raw("verbose").is_some() {
        "[+]ping ok\n[+]store ok\nhealthz check passed\n"
    } else {
        "ok"
    };
    let text = text.to_owned();
    Ok(Reply::text(200, "text/plain; charset=utf-8", text))
}

/// Answers discovery and OpenAPI requests.
fn discover(api: &Api, route: &Route, call: &Call) -> Result<Reply> {
    let accept = call.header(header::ACCEPT);
    let page = match route {
        Route::Version => Page::Version,
        Route::Groups(core) => match accept::aggregated_discovery(accept) {
            Some(version) => {
                let page = discovery::page(Page::Aggregated {
                    core: *core,
                    version,
                });
                let document = page.ok_or_else(ApiError::no_such_resource)?;
                let content_type = aggregated_type(version);
                return Ok(document_reply(document, content_type, call));
            }
            None if *core => {
                let address = api.settings.address.to_string();
                return Ok(Reply::value(200, &discovery::api_versions(&address)));
            }
            None => Page::Groups,
        },
        Route::Group(group) => Page::Group(group),
        Route::GroupVersion(group, version) => Page::Resources(group, version),
        other => return describe(other, call),
    };
    let document = discovery::page(page).ok_or_else(ApiError::no_such_resource)?;
    Ok(document_reply(document, "application/json", call))
}

fn aggregated_type(version: &str) -> &'static str {
    if version == "v2" {
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    } else {
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    }
}

/// Answers OpenAPI requests.
fn describe(route: &Route, call: &Call) -> Result<Reply> {
    let reply = |document: &Document, content_type| document_reply(document, content_type, call);
    match route {
        Route::OpenApiV3 => Ok(reply(openapi::v3_index(), openapi::JSON_CONTENT_TYPE)),
        Route::OpenApiV3Document(group, version) => {
            let document = openapi::v3_document(group, version);
            let document = document.ok_or_else(ApiError::no_such_resource)?;
            Ok(reply(&document, openapi::JSON_CONTENT_TYPE))
        }
        Route::OpenApiV2 => {
            let accept = call.header(header::ACCEPT).unwrap_or_default();
            if accept.contains("protobuf") {
                return Ok(reply(
                    &openapi::v2_protobuf(),
                    openapi::V2_PROTOBUF_CONTENT_TYPE,
                ));
            }
            Ok(reply(&openapi::v2_json(), openapi::JSON_CONTENT_TYPE))
        }
        _ => Err(ApiError::no_such_resource()),
    }
}

/// A document that clients may have cached.
pub(crate) fn document_reply(
    document: &Document,
    content_type: &'static str,
    call: &Call,
) -> Reply {
    let known = call
        .header(header::IF_NONE_MATCH)
        .is_some_and(|tags| document.matches(tags));
    let mut reply = if known {
        Reply::json(304, Bytes::new())
    } else {
        Reply::json(200, document.body.clone())
    };
    reply.content_type = content_type;
    if let Ok(etag) = HeaderValue::from_str(&document.etag) {
        reply.headers.push((header::ETAG, etag));
    }
    reply
        .headers
        .push((header::VARY, HeaderValue::from_static("Accept")));
    reply
}

fn discovery_paths() -> Vec<String> {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for (group, version) in crate::registry::group_versions() {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
            paths.push(format!("/apis/{group}/{version}"));
        }
    }
    paths.sort();
    paths
}

/// People read pretty JSON; machines get it compact.
fn wants_pretty(query: &Query, agent: Option<&HeaderValue>) -> bool {
    match query.raw("pretty") {
        Some(value) => matches!(value, "" | "true" | "1"),
        None => agent.and_then(|a| a.to_str().ok()).is_some_and(|agent| {
            agent.starts_with("curl/")
                || agent.starts_with("Wget/")
                || agent.starts_with("Mozilla/")
        }),
    }
}

pub(crate) fn respond(reply: Reply, pretty: bool) -> Response<Body> {
    let mut response = Response::new(prettified(
        reply.body,
        pretty && reply.content_type == "application/json",
    ));
    *response.status_mut() =
        http::StatusCode::from_u16(reply.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    // A 304 has no body, so it has no type either.
    if reply.code != 304 {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(reply.content_type),
        );
    }
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    for warning in &reply.warnings {
        let text = format!("299 - \"{}\"", quoted(warning));
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            headers.append(header::WARNING, value);
        }
    }
    for (name, value) in reply.headers {
        headers.insert(name, value);
    }
    response
}

fn prettified(body: Body, pretty: bool) -> Body {
    let Body::Whole(Some(bytes)) = &body else {
        return body;
    };
    if !pretty {
        return body;
    }
    let parsed: std::result::Result<serde_json::Value, _> = serde_json::from_slice(bytes);
    match parsed.and_then(|value| serde_json::to_vec_pretty(&value)) {
        Ok(mut text) => {
            text.push(b'\n');
            Body::from(Bytes::from(text))
        }
        Err(_) => body,
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace(['\n', '\r'], " ")
}
