//! `exec`, `attach` and `portforward`: upgrades the connection and relays it to the agent. Client and agent
//! choose the protocol, SPDY or WebSocket.

use form_urlencoded::Serializer;
use http::{HeaderMap, Response, StatusCode, header};
use hyper_util::rt::TokioIo;

use super::{ConnectRequest, agent, forward, location};
use crate::agent_client::Agent;
use crate::registry::Connect;
use crate::request::query::Query;
use crate::response::Body;
use crate::status::{ApiError, Result};
use crate::upgrade::Upgrade;

/// The query parameters of the streams, in the API and in the kubelet API.
const STREAMS: [(&str, &str); 4] = [
    ("stdin", "input"),
    ("stdout", "output"),
    ("stderr", "error"),
    ("tty", "tty"),
];

pub(super) async fn serve(
    request: &ConnectRequest<'_>,
    connect: Connect,
    upgrade: Option<Box<Upgrade>>,
) -> Result<Response<Body>> {
    let (agent, target) = target_of(request, connect)?;
    let asks = wants_upgrade(&request.call.headers);
    let Some(upgrade) = upgrade.filter(|_| asks) else {
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let (method, headers) = (request.method, &request.call.headers);
    let body = request.call.body.clone();
    let forwarded = forward::request(method, &agent.authority(), &target, headers, body)?;
    let api = request.api;
    let answer = agent::send(api, &agent, forwarded).await;
    let mut answer =
        answer.map_err(|why| ApiError::without_reason(format!("error dialing backend: {why}")))?;
    let ending = api.hubs.ending();
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(forward::answer(answer, ending));
    }
    let backend = hyper::upgrade::on(&mut answer).await;
    let backend =
        backend.map_err(|why| ApiError::without_reason(format!("error dialing backend: {why}")))?;
    let protocol = answer.headers().get(header::UPGRADE);
    let is_websocket =
        protocol.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(b"websocket"));
    upgrade.connect(TokioIo::new(backend), is_websocket, ending);
    let (mut parts, _) = answer.into_parts();
    parts.extensions.clear();
    Ok(Response::from_parts(parts, Body::empty()))
}

fn wants_upgrade(headers: &HeaderMap) -> bool {
    let connection = headers.get_all(header::CONNECTION).iter();
    let mut words = connection
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    words.any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

/// The agent, and the path and query in its kubelet API.
fn target_of(request: &ConnectRequest<'_>, connect: Connect) -> Result<(Agent, String)> {
    let (name, namespace) = (request.name()?, request.namespace());
    let pod = location::find_pod(request.api, namespace, name)?;
    let query = &request.call.query;
    let (path, parameters) = if connect == Connect::PortForward {
        (format!("/portForward/{namespace}/{name}"), ports(query)?)
    } else {
        let container = location::container(&pod, name, query.get("container"))?;
        let is_exec = connect == Connect::Exec;
        let action = if is_exec { "exec" } else { "attach" };
        let path = format!("/{action}/{namespace}/{name}/{container}");
        (path, streams(query, is_exec)?)
    };
    let agent = location::agent_of_pod(request.api, &pod, name)?;
    Ok((agent, super::log::target(&path, &parameters)))
}

fn streams(query: &Query, with_command: bool) -> Result<String> {
    let mut parameters = Serializer::new(String::new());
    for (ours, theirs) in STREAMS {
        if query.flag(ours)? {
            parameters.append_pair(theirs, "1");
        }
    }
    if with_command {
        for word in query.all("command") {
            parameters.append_pair("command", word);
        }
    }
    Ok(parameters.finish())
}

/// The ports in the query. WebSocket clients name them here; SPDY clients name each port in its stream.
fn ports(query: &Query) -> Result<String> {
    let mut ports = Vec::new();
    for port in query.all("ports").flat_map(|ports| ports.split(',')) {
        let number: u16 = port.parse().map_err(|_| {
            let why = format!("strconv.ParseInt: parsing \"{port}\": invalid syntax");
            ApiError::bad_request(why)
        })?;
        ports.push(number.to_string());
    }
    if ports.is_empty() {
        return Ok(String::new());
    }
    let mut parameters = Serializer::new(String::new());
    Ok(parameters.append_pair("port", &ports.join(",")).finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_ports_have_other_names_in_the_kubelet_api() {
        let query = |text: &str| Query::parse(Some(text));
        let shell = query("stdin=true&stdout=1&stderr=false&tty=true&command=ls&command=-l+a%2Fb");
        let expected = "input=1&output=1&tty=1&command=ls&command=-l+a%2Fb";
        assert_eq!(streams(&shell, true).unwrap(), expected);
        assert_eq!(streams(&shell, false).unwrap(), "input=1&output=1&tty=1");
        assert_eq!(
            ports(&query("ports=80&ports=81,82")).unwrap(),
            "port=80%2C81%2C82"
        );
        assert_eq!(ports(&query("")).unwrap(), "");
        assert_eq!(ports(&query("ports=http")).unwrap_err().code, 400);
    }

    #[test]
    fn upgrades_are_asked_for_in_any_case() {
        for (value, expected) in [
            ("Upgrade", true),
            ("keep-alive, upgrade", true),
            ("keep-alive", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONNECTION, value.parse().unwrap());
            assert_eq!(wants_upgrade(&headers), expected, "{value}");
        }
    }
}
