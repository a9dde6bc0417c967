//! `pods/log`: the output of a container, as text.

use form_urlencoded::Serializer;
use http::{Method, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use kennel_types::Timestamp;

use super::{ConnectRequest, agent, forward, location};
use crate::agent_client::Agent;
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::limits;
use crate::request::query::Query;
use crate::response::{Body, Reply};
use crate::status::{ApiError, Result};

const FLAGS: [&str; 3] = ["follow", "previous", "timestamps"];
/// Options that are numbers, with their minimum.
const NUMBERS: [(&str, i64); 3] = [("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)];
/// The values of the option `stream`.
const STREAMS: [&str; 3] = ["All", "Stderr", "Stdout"];

pub(super) async fn serve(request: &ConnectRequest<'_>) -> Result<Response<Body>> {
    let (agent, target) = target_of(request)?;
    let url = format!("https://{}{target}", agent.authority());
    let headers = http::HeaderMap::new();
    let nothing = bytes::Bytes::new();
    let forwarded = forward::request(&Method::GET, &agent.authority(), &target, &headers, nothing)?;
    let api = request.api;
    let answer = agent::send(api, &agent, forwarded).await;
    let answer = answer.map_err(|why| ApiError::without_reason(format!("Get \"{url}\": {why}")))?;
    let code = answer.status().as_u16();
    if !(200..=206).contains(&code) {
        let words = refusal(answer.into_body()).await?;
        return Err(ApiError::from_agent(
            code,
            "pods/log",
            request.name()?,
            &words,
        ));
    }
    let body = forward::stream(answer.into_body(), api.hubs.ending());
    let reply = Reply {
        content_type: "text/plain",
        ..Reply::stream(body)
    };
    Ok(reply.into_response(false))
}

/// The message of an agent's refusal.
async fn refusal(body: Incoming) -> Result<String> {
    let read = Limited::new(body, limits::REFUSAL_BYTES_MAX)
        .collect()
        .await;
    let bytes = read.map_err(ApiError::internal)?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn target_of(request: &ConnectRequest<'_>) -> Result<(Agent, String)> {
    let (name, namespace) = (request.name()?, request.namespace());
    let query = &request.call.query;
    let options = options(query, name)?;
    let pod = location::find_pod(request.api, namespace, name)?;
    let container = location::container(&pod, name, query.get("container"))?;
    let path = format!("/containerLogs/{namespace}/{name}/{container}");
    let agent = location::agent_of_pod(request.api, &pod, name)?;
    Ok((agent, target(&path, &options)))
}

/// A path and its parameters, if there are any.
pub(super) fn target(path: &str, parameters: &str) -> String {
    if parameters.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{parameters}")
}

/// The options, checked, as the agent takes them.
fn options(query: &Query, name: &str) -> Result<String> {
    let mut parameters = Serializer::new(String::new());
    let mut errors = Errors::new();
    for flag in FLAGS {
        if query.flag(flag)? {
            parameters.append_pair(flag, "true");
        }
    }
    for (option, least) in NUMBERS {
        let Some(number) = query.integer(option)? else {
            continue;
        };
        if number < least {
            let words = if least == 0 {
                "must be greater than or equal to 0"
            } else {
                "must be greater than 0"
            };
            errors.invalid(&Path::new(option), number, words);
        }
        parameters.append_pair(option, &number.to_string());
    }
    if let Some(since) = since_time(query)? {
        if query.get("sinceSeconds").is_some() {
            let words = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.forbidden(&Path::new(""), words);
        }
        parameters.append_pair("sinceTime", &since);
    }
    if let Some(stream) = query.get("stream") {
        errors.extend(stream_error(stream, query));
        parameters.append_pair("stream", stream);
    }
    if errors.is_empty() {
        return Ok(parameters.finish());
    }
    Err(ApiError::invalid_kind("", "PodLogOptions", name, &errors))
}

fn stream_error(stream: &str, query: &Query) -> Option<FieldError> {
    if !STREAMS.contains(&stream) {
        let path = Path::new("stream");
        return Some(FieldError::not_supported(&path, stream, &STREAMS));
    }
    if stream == "All" || query.get("tailLines").is_none() {
        return None;
    }
    let words = "`tailLines` and specific `stream` are mutually exclusive for now";
    Some(FieldError::forbidden(&Path::new(""), words))
}

/// The time in whole seconds, as upstream passes it on.
fn since_time(query: &Query) -> Result<Option<String>> {
    let Some(text) = query.get("sinceTime") else {
        return Ok(None);
    };
    let time: Timestamp = text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \"2006\""
        ))
    })?;
    Ok(Some(time.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &str) {
        let found = options(&Query::parse(Some(query)), "p");
        let shown = found.unwrap_or_else(|error| error.message);
        assert_eq!(shown, expected, "{query}");
    }

    #[test]
    fn options_are_checked_and_passed_on() {
        check("", "");
        check(
            "follow=true&previous=1&timestamps=false&tailLines=0&limitBytes=1&container=c",
            "follow=true&previous=true&tailLines=0&limitBytes=1",
        );
        check(
            "sinceTime=2026-01-02T03:04:05.678%2B01:00",
            "sinceTime=2026-01-02T02%3A04%3A05Z",
        );
        check("stream=Stdout", "stream=Stdout");
        let invalid = |words: &str| format!("PodLogOptions \"p\" is invalid: {words}");
        for (query, words) in [
            (
                "tailLines=-1",
                "tailLines: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                "limitBytes=0",
                "limitBytes: Invalid value: 0: must be greater than 0",
            ),
            (
                "sinceSeconds=0",
                "sinceSeconds: Invalid value: 0: must be greater than 0",
            ),
            (
                "stream=both",
                "stream: Unsupported value: \"both\": supported values: \"All\", \"Stderr\", \"Stdout\"",
            ),
        ] {
            check(query, &invalid(words));
        }
        check(
            "tailLines=x",
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        );
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for query in [
            "sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z",
            "stream=Stdout&tailLines=5",
        ] {
            let error = options(&Query::parse(Some(query)), "p").unwrap_err();
            assert_eq!(error.code, 422, "{query}");
            assert!(error.message.contains("Forbidden"), "{}", error.message);
        }
    }
}
