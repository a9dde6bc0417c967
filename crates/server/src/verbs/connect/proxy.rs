//! `nodes/proxy` and `pods/proxy`: forwards one request to a node's agent or to a pod. The proxy does not
//! upgrade connections: a shell needs `pods/exec` and the right to use it.

use http::Response;

use super::{ConnectRequest, agent, forward, location};
use crate::agent_client::{self, Answer, Request, SendError};
use crate::request::path::split_proxied;
use crate::response::Body;
use crate::status::{ApiError, Result};

/// The port of pods that declare none.
const PORT_DEFAULT: u16 = 80;

/// The backend in the path: `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    scheme: &'a str,
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Named<'a> {
    fn of(request: &ConnectRequest<'a>, singular: &str) -> Result<Self> {
        let text = request.name()?;
        Self::parse(text)
            .ok_or_else(|| ApiError::bad_request(format!("invalid {singular} request \"{text}\"")))
    }

    fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts[..] {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme @ ("" | "http" | "https"), name, port] => (scheme, name, port),
            _ => return None,
        };
        let port = match port {
            "" => None,
            port => Some(port.parse().ok()?),
        };
        (!name.is_empty()).then_some(Self { scheme, name, port })
    }
}

/// Forwards a request to the agent of a node.
pub(super) async fn to_node(request: &ConnectRequest<'_>) -> Result<Response<Body>> {
    let named = Named::of(request, "node")?;
    let agent = location::agent_of(request.api, named.name)?;
    if named.scheme == "http" || named.port.is_some_and(|port| port != agent.port) {
        let why = format!("nodes are proxied only to https on port {}", agent.port);
        return Err(ApiError::bad_request(why));
    }
    let forwarded = forwarded(request, &agent.authority())?;
    let answer = agent::send(request.api, &agent, forwarded).await;
    respond(request, answer)
}

/// Forwards a request to a pod.
pub(super) async fn to_pod(request: &ConnectRequest<'_>) -> Result<Response<Body>> {
    let named = Named::of(request, "pod")?;
    let pod = location::find_pod(request.api, request.namespace(), named.name)?;
    if named.scheme == "https" {
        // There is no CA that certificates of pods could be verified against.
        return Err(ApiError::bad_request("pods are proxied only to http"));
    }
    let (address, port) = location::pod_address(&pod)?;
    let port = named.port.or(port).unwrap_or(PORT_DEFAULT);
    let authority = std::net::SocketAddr::new(address, port).to_string();
    let forwarded = forwarded(request, &authority)?;
    let answer = agent_client::send_without_tls(&address.to_string(), port, forwarded).await;
    respond(request, answer)
}

fn respond(
    request: &ConnectRequest<'_>,
    answer: std::result::Result<Answer, SendError>,
) -> Result<Response<Body>> {
    let answer = answer.map_err(|why| {
        // Upstream's proxy answers with a reason here, but without `Retry-After`.
        let mut error = ApiError::unavailable(format!("error trying to reach service: {why}"));
        error.retry_after_seconds = None;
        error
    })?;
    Ok(forward::answer(answer, request.api.hubs.ending()))
}

/// The request for the backend, with the part of the path behind `proxy`.
fn forwarded(request: &ConnectRequest<'_>, authority: &str) -> Result<Request> {
    let beyond = split_proxied(request.uri.path()).map_or("", |(_, beyond)| beyond);
    let path = if beyond.is_empty() { "/" } else { beyond };
    let target = super::log::target(path, request.uri.query().unwrap_or_default());
    let (headers, body) = (&request.call.headers, request.call.body.clone());
    let mut forwarded = forward::request(request.method, authority, &target, headers, body)?;
    forward::remove_hop_by_hop(forwarded.headers_mut());
    Ok(forwarded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_a_scheme_and_a_port() {
        for (text, expected) in [
            ("a", Some(("", "a", None))),
            ("a:80", Some(("", "a", Some(80)))),
            ("https:a:", Some(("https", "a", None))),
            ("http:a:8080", Some(("http", "a", Some(8080)))),
            ("a:http", None),
            ("ftp:a:1", None),
            (":80", None),
            ("a:b:c:d", None),
        ] {
            let named = Named::parse(text).map(|n| (n.scheme, n.name, n.port));
            assert_eq!(named, expected, "{text}");
        }
    }
}
