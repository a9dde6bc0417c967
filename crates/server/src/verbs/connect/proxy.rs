//! `nodes/proxy` and `pods/proxy`: one request, passed on to a node's agent or to a pod, and its answer. They
//! stay HTTP: who wants a shell takes `pods/exec`, which asks for the right to have one.

use http::Response;

use super::location::{Agent, Pod};
use super::{Visit, dial, pass};
use crate::http::body::Body;
use crate::request::path::split_proxied;
use crate::status::{ApiError, Result};

/// Where pods listen that do not say.
const PORT_DEFAULT: u16 = 80;

/// What is named: `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    scheme: &'a str,
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Named<'a> {
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

pub(super) async fn serve(visit: &Visit<'_>) -> Result<Response<Body>> {
    let text = visit.name()?;
    let kind = visit.place.row.singular;
    let named = Named::parse(text);
    let named =
        named.ok_or_else(|| ApiError::bad_request(format!("invalid {kind} request \"{text}\"")))?;
    let answer = if kind == "node" {
        to_agent(visit, &named).await?
    } else {
        to_pod(visit, &named).await?
    };
    let answer = answer.map_err(|why| {
        // Upstream's proxy says so itself, and so has a reason for it.
        let mut error = ApiError::unavailable(format!("error trying to reach service: {why}"));
        error.retry_after_seconds = None;
        error
    })?;
    Ok(pass::answer(answer, visit.api.hubs.ending()))
}

async fn to_agent(visit: &Visit<'_>, named: &Named<'_>) -> Result<Result<dial::Answer, String>> {
    let agent = Agent::of(visit.api, named.name)?;
    if named.scheme == "http" || named.port.is_some_and(|port| port != agent.port) {
        let why = format!(
            "only https on port {} of a node is passed on to",
            agent.port
        );
        return Err(ApiError::bad_request(why));
    }
    let request = passed_on(visit, &agent.authority())?;
    Ok(visit.api.settings.agents.send(&agent, request).await)
}

async fn to_pod(visit: &Visit<'_>, named: &Named<'_>) -> Result<Result<dial::Answer, String>> {
    let pod = Pod::find(visit.api, visit.namespace(), named.name)?;
    if named.scheme == "https" {
        // Nobody could say whose certificate a pod must show.
        let why = "only http of a pod is passed on to";
        return Err(ApiError::bad_request(why));
    }
    let (address, port) = pod.address()?;
    let port = named.port.or(port).unwrap_or(PORT_DEFAULT);
    let authority = std::net::SocketAddr::new(address, port).to_string();
    let request = passed_on(visit, &authority)?;
    Ok(dial::send_plainly(&address.to_string(), port, request).await)
}

fn passed_on(visit: &Visit<'_>, authority: &str) -> Result<dial::Request> {
    let beyond = split_proxied(visit.uri.path()).map_or("", |(_, beyond)| beyond);
    let path = if beyond.is_empty() { "/" } else { beyond };
    let target = super::log::target(path, visit.uri.query().unwrap_or_default());
    let (headers, body) = (&visit.call.headers, visit.call.body.clone());
    let mut request = pass::request(visit.method, authority, &target, headers, body)?;
    pass::without_connection(request.headers_mut());
    Ok(request)
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
