//! The way of a request through the API: authenticates and authorises it, and hands it to what serves its
//! path: a verb, discovery, OpenAPI, health or metrics.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, header};
use kennel_core::health::{Endpoint, Question};
use kennel_core::selector::FieldSelector;
use kennel_types::Verb;
use serde_json::json;

use crate::api::Api;
use crate::audit::PendingEvent;
use crate::authenticate::{impersonate, issuer};
use crate::authorize::Attributes;
use crate::certificate_admin;
use crate::discovery::{self, Page};
use crate::documents::{describe, document_reply};
use crate::request::path::{self, Route, Unserved};
use crate::request::query::Query;
use crate::request::{AuthorizedRequest, Caller, User, accept};
use crate::response::{Body, Reply};
use crate::status::{ApiError, Result};
use crate::upgrade::Upgrade;
use crate::verbs::connect::{self, ConnectRequest};
use crate::verbs::{self, Call};

/// Authenticates a request. Comes first, so that the logs name the user of every refusal.
pub(crate) fn authenticate(api: &Api, parts: &Parts, caller: &Caller) -> Result<User> {
    api.authenticator.user(caller, &parts.headers)
}

/// Parses and authorises a request. Needs no body, so that the server reads the bodies of authorised
/// requests alone.
pub(crate) fn authorize(
    api: &Api,
    parts: Parts,
    user: User,
    event: &mut PendingEvent,
) -> Result<AuthorizedRequest> {
    // Anonymous callers get 401; impersonating an anonymous user gets 403.
    let is_anonymous = user.is_anonymous();
    let refused = |error: ApiError| match error.code {
        403 if is_anonymous => ApiError::unauthorized(),
        _ => error,
    };
    let acting =
        impersonate::effective_user(&api.authorizer, user, &parts.headers).map_err(refused);
    event.set_decision(&acting, String::new);
    let user = acting?;
    event.set_user(&user);
    let query = Query::parse(parts.uri.query());
    let (method, path) = (&parts.method, parts.uri.path());
    let route = path::parse(path);
    let watching = *method == Method::GET && query.flag("watch").unwrap_or_default();
    // Authorisation ignores a selector that does not parse; the verb refuses it later.
    let fields = query.get("fieldSelector");
    let fields = fields.and_then(|text| FieldSelector::parse(text).ok());
    let asked = Attributes::of(method, route.as_ref(), path, watching, fields.as_ref());
    let allowed = api.authorizer.check(&user, &asked).map_err(refused);
    event.set_decision(&allowed, || api.authorizer.verdict(&user, &asked).reason);
    allowed?;
    let route = route.ok_or_else(ApiError::no_such_resource)?;
    let verb = route.verb(method, watching);
    Ok(AuthorizedRequest {
        user,
        query,
        route,
        verb,
        parts,
    })
}

/// Serves an authorised request. `upgrade` is present if the connection can switch protocols.
pub(crate) async fn serve(
    api: &Arc<Api>,
    request: AuthorizedRequest,
    body: Bytes,
    upgrade: Option<Box<Upgrade>>,
) -> Response<Body> {
    let AuthorizedRequest {
        user,
        query,
        route,
        verb,
        parts,
    } = request;
    let pretty = wants_pretty(&query, parts.headers.get(header::USER_AGENT));
    let call = Call {
        user,
        headers: parts.headers,
        query,
        body,
    };
    let refused = |error: ApiError| Reply::from(&error).into_response(pretty);
    let mut response = match (route.connect(), route) {
        (Some(connect), Route::Objects(place)) => {
            let request = ConnectRequest {
                api,
                call: &call,
                place: &place,
                verb,
                method: &parts.method,
                uri: &parts.uri,
            };
            // Boxed, because its future is large and few requests need it.
            let answer = Box::pin(connect::serve(request, connect, upgrade)).await;
            answer.unwrap_or_else(refused)
        }
        (_, route) => {
            let request = (&parts.method, parts.uri.path());
            let reply = dispatch(api, request, route, verb, &call).await;
            reply.map_or_else(refused, |reply| reply.into_response(pretty))
        }
    };
    if parts.method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

async fn dispatch(
    api: &Arc<Api>,
    (method, path): (&Method, &str),
    route: Route,
    verb: Verb<'_>,
    call: &Call,
) -> Result<Reply> {
    call.query.flag("watch")?;
    let reading = matches!(*method, Method::GET | Method::HEAD);
    match route {
        Route::Objects(place) => verbs::objects(api, call, &place, verb).await,
        Route::Empty(vacant) => {
            let name = vacant.name.as_deref();
            verbs::empty(api, call, vacant.collection, name, verb).await
        }
        // Boxed, because its future is large and few requests need it.
        Route::Measured(place) => Box::pin(verbs::measured(api, call, &place, verb)).await,
        Route::Unserved(Unserved {
            group,
            version,
            resource,
            ..
        }) => Err(ApiError::unserved(&group, &version, &resource)),
        Route::CreateOnly(row, namespace) if *method == Method::POST => {
            verbs::create_only(api, call, row, namespace.as_deref()).await
        }
        Route::CreateOnly(row, _) => Err(ApiError::method_not_allowed(row.group, row.plural, verb)),
        Route::Certificates(Some(action)) if *method == Method::POST => {
            certificate_admin::act(api, action, &call.body).await
        }
        _ if !reading => Err(ApiError::method_not_allowed("", path, method.as_str())),
        Route::Certificates(None) => Ok(certificate_admin::list(api)),
        Route::Certificates(Some(_)) => {
            Err(ApiError::method_not_allowed("", path, method.as_str()))
        }
        Route::Health(endpoint, check) => health(api, endpoint, &check, call),
        Route::Metrics => Ok(Reply::text(
            200,
            "text/plain; version=0.0.4",
            api.metrics_page(),
        )),
        Route::Issuer => Ok(issuer::document(api.settings.address)),
        Route::IssuerKeys => Ok(issuer::keys(&api.authenticator.keys())),
        Route::Root => Ok(Reply::value(200, &json!({"paths": discovery_paths()}))),
        other => discover(api, &other, call),
    }
}

fn health(api: &Api, endpoint: Endpoint, check: &str, call: &Call) -> Result<Reply> {
    let excluded: Vec<&str> = call.query.all("exclude").collect();
    let question = Question {
        endpoint,
        check,
        verbose: call.query.raw("verbose").is_some(),
        excluded: &excluded,
        // Health is open to anonymous users: they learn what fails, and not why.
        trusted: !call.user.is_anonymous(),
    };
    let answer = api.health.answer(&question);
    let answer = answer.ok_or_else(ApiError::no_such_resource)?;
    Ok(Reply::text(
        answer.code,
        "text/plain; charset=utf-8",
        answer.text,
    ))
}

/// Answers discovery requests.
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

/// Without the parameters, clients would parse the answer as unaggregated discovery.
fn aggregated_type(version: &str) -> &'static str {
    if version == "v2" {
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    } else {
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    }
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

/// Whether to indent JSON: on request, and for clients that people use directly.
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
