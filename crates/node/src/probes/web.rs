//! HTTP requests to containers: one request per connection, and of the answer little more than its status.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::redirect::Address;
use super::{Target, Unwell, dial, tls};
use crate::runtime::Duplex;

/// How much of an answer is read before its connection is closed.
const READ: usize = 10 << 10;
/// How often a request may be sent on.
const REDIRECTS: usize = 10;

/// A probe by HTTP: it passes with a status from 200 to 399.
pub(super) async fn ask(
    target: &Target<'_>,
    action: &Value,
    timeout: Duration,
) -> Result<(), Unwell> {
    let request = Asked::new(target, action, "kube-probe/1.36").map_err(Unwell::Unknown)?;
    let answer = tokio::time::timeout(timeout, request.send()).await;
    let status = answer.unwrap_or_else(|_| Err(late(&request.address)));
    match status.map_err(Unwell::Failed)? {
        200..400 => Ok(()),
        status => Err(Unwell::Failed(format!(
            "HTTP probe failed with statuscode: {status}"
        ))),
    }
}

fn late(address: &Address) -> String {
    let url = address.url();
    format!(
        "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    )
}

/// A request of a probe or a hook.
pub(super) struct Asked {
    address: Address,
    headers: HeaderMap,
    /// The host that the spec asks for by name.
    named: Option<HeaderValue>,
}

impl Asked {
    /// What a spec's action asks for.
    pub(super) fn new(
        target: &Target<'_>,
        action: &Value,
        agent: &'static str,
    ) -> Result<Self, String> {
        let secure = action["scheme"]
            .as_str()
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let host = target.host(action)?;
        let port = target.port(&action["port"])?;
        let path = action["path"].as_str().unwrap_or_default();
        let mut headers = given(&action["httpHeaders"])?;
        let named = headers.remove(HOST);
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(agent));
        headers
            .entry(ACCEPT)
            .or_insert(HeaderValue::from_static("*/*"));
        if headers.get(ACCEPT).is_some_and(HeaderValue::is_empty) {
            headers.remove(ACCEPT);
        }
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        Ok(Self {
            address: Address::new(secure, host, port, path),
            headers,
            named,
        })
    }

    /// Sends it, and sends it on where the same host says so. Answers with a status.
    pub(super) async fn send(&self) -> Result<u16, String> {
        let mut address = self.address.clone();
        let mut named = self.named.clone();
        for _ in 0..=REDIRECTS {
            let sent = self.send_to(&address, named.as_ref()).await;
            let answer = sent.map_err(|error| format!("Get {:?}: {error}", address.url()))?;
            let Some(next) = sent_on(&address, &answer) else {
                let status = answer.status().as_u16();
                read(answer).await;
                return Ok(status);
            };
            if next.authority() != address.authority() {
                named = None;
            }
            address = next;
        }
        Err(format!(
            "Get {:?}: stopped after {REDIRECTS} redirects",
            address.url()
        ))
    }

    async fn send_to(
        &self,
        address: &Address,
        named: Option<&HeaderValue>,
    ) -> Result<Response<Held>, String> {
        let stream = dial::connect(&address.host, address.port).await?;
        let stream: Box<dyn Duplex> = if address.secure {
            Box::new(tls::speak(stream, &address.host).await?)
        } else {
            Box::new(stream)
        };
        let host = match named {
            Some(named) => named.clone(),
            None => HeaderValue::try_from(address.authority()).map_err(|e| e.to_string())?,
        };
        let mut request = Request::get(&address.path)
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().extend(self.headers.clone());
        exchange(stream, request).await.map_err(|e| reason(&e))
    }
}

/// An answer's body, which comes over a connection that somebody must look after.
struct Held {
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

async fn exchange(
    stream: Box<dyn Duplex>,
    request: Request<Empty<Bytes>>,
) -> Result<Response<Held>, hyper::Error> {
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::trace!(%error, "a probe's connection ended");
        }
    }));
    let answer = sender.send_request(request).await?;
    Ok(answer.map(|body| Held {
        body,
        _connection: connection,
    }))
}

/// Some servers find it rude if nobody reads what they say.
async fn read(answer: Response<Held>) {
    let mut held = answer.into_body();
    let mut size = 0;
    while let Some(Ok(frame)) = held.body.frame().await {
        size += frame.data_ref().map_or(0, Bytes::len);
        if size >= READ {
            return;
        }
    }
}

fn sent_on(address: &Address, answer: &Response<Held>) -> Option<Address> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer.headers().get(LOCATION)?.to_str().ok()?;
    address.follow(location)
}

fn given(list: &Value) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for header in list.as_array().into_iter().flatten() {
        let name = header["name"].as_str().unwrap_or_default();
        let value = header["value"].as_str().unwrap_or_default();
        let parsed = HeaderName::try_from(name).ok().zip(value.parse().ok());
        let (name, value) = parsed.ok_or_else(|| format!("invalid header {name:?}"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// What went wrong on a connection, in upstream's words.
fn reason(error: &hyper::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(error) = inner.downcast_ref::<io::Error>() {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
                _ => format!("read: {}", dial::words(error)),
            };
        }
        cause = inner.source();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        "EOF".to_owned()
    } else if error.is_parse() {
        "net/http: HTTP/1.x transport connection broken: malformed HTTP response".to_owned()
    } else {
        error.to_string()
    }
}
