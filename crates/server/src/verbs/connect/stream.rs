//! `exec`, `attach` and `portforward`: the client's connection and the agent's become one. Whether they speak
//! SPDY or a web socket is between the two of them.

use form_urlencoded::Serializer;
use http::{HeaderMap, Response, StatusCode, header};
use hyper_util::rt::TokioIo;

use super::location::{Agent, Pod};
use super::{Visit, pass};
use crate::http::body::Body;
use crate::http::switch::Switch;
use crate::request::query::Query;
use crate::status::{ApiError, Result};

/// What a shell's streams are called by clients, and by agents.
const STREAMS: [(&str, &str); 4] = [
    ("stdin", "input"),
    ("stdout", "output"),
    ("stderr", "error"),
    ("tty", "tty"),
];

pub(super) async fn serve(
    visit: &Visit<'_>,
    subresource: &str,
    switch: Option<Box<Switch>>,
) -> Result<Response<Body>> {
    let (agent, target) = location(visit, subresource)?;
    let asks = wants_upgrade(&visit.call.headers);
    let Some(switch) = switch.filter(|_| asks) else {
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let (method, headers) = (visit.method, &visit.call.headers);
    let body = visit.call.body.clone();
    let request = pass::request(method, &agent.authority(), &target, headers, body)?;
    let api = visit.api;
    let answer = api.settings.agents.send(&agent, request).await;
    let mut answer =
        answer.map_err(|why| ApiError::unexplained(format!("error dialing backend: {why}")))?;
    let ending = api.hubs.ending();
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(pass::answer(answer, ending));
    }
    let far = hyper::upgrade::on(&mut answer).await;
    let far = far.map_err(|why| ApiError::unexplained(format!("error dialing backend: {why}")))?;
    switch.connect(TokioIo::new(far), ending);
    let (mut parts, _) = answer.into_parts();
    parts.extensions.clear();
    Ok(Response::from_parts(parts, Body::empty()))
}

/// Whether a client asks to stop speaking HTTP.
fn wants_upgrade(headers: &HeaderMap) -> bool {
    let connection = headers.get_all(header::CONNECTION).iter();
    let mut words = connection
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    words.any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

/// The agent that must be asked, and what for.
fn location(visit: &Visit<'_>, subresource: &str) -> Result<(Agent, String)> {
    let (name, namespace) = (visit.name()?, visit.namespace());
    let pod = Pod::find(visit.api, namespace, name)?;
    let query = &visit.call.query;
    let (path, parameters) = if subresource == "portforward" {
        (format!("/portForward/{namespace}/{name}"), ports(query)?)
    } else {
        let container = pod.container(name, query.get("container"))?;
        let path = format!("/{subresource}/{namespace}/{name}/{container}");
        (path, streams(query, subresource == "exec")?)
    };
    let agent = pod.agent(visit.api, name)?;
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

/// The ports that are named in advance: web sockets need them, SPDY names each as it comes.
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
    fn streams_and_ports_have_other_names_behind_the_agents_door() {
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
