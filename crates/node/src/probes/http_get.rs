//! HTTP GET requests to containers: one request per connection.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::error::{ExchangeError, HttpError, RequestError, message};
use super::redirect::Url;
use super::{ProbeError, Target, dial};
use crate::runtime::Duplex;
use crate::unverified_tls;

/// How much of a response is read before the connection is closed.
const MAX_BODY_BYTES: usize = 10 << 10;
const MAX_REDIRECTS: usize = 10;

/// Succeeds with a status from 200 to 399.
pub(super) async fn probe(
    target: &Target<'_>,
    action: &Value,
    timeout: Duration,
) -> Result<(), ProbeError> {
    let request = HttpGet::new(target, action, "kube-probe/1.36")
        .map_err(|error| ProbeError::Unknown(error.to_string()))?;
    let response = tokio::time::timeout(timeout, request.send()).await;
    let status = response.unwrap_or_else(|_| {
        let url = request.url.text();
        Err(HttpError::Timeout { url })
    });
    match status.map_err(|error| ProbeError::Failed(message(&error)))? {
        200..400 => Ok(()),
        status => Err(ProbeError::Failed(format!(
            "HTTP probe failed with statuscode: {status}"
        ))),
    }
}

/// An `httpGet` action of a probe or a hook.
pub(super) struct HttpGet {
    url: Url,
    headers: HeaderMap,
    /// The `Host` header that the action sets.
    host: Option<HeaderValue>,
}

impl HttpGet {
    pub(super) fn new(
        target: &Target<'_>,
        action: &Value,
        user_agent: &'static str,
    ) -> Result<Self, RequestError> {
        let secure = action["scheme"]
            .as_str()
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let host = target.host(action)?;
        let port = target.port(&action["port"])?;
        let path = action["path"].as_str().unwrap_or_default();
        let mut headers = custom_headers(&action["httpHeaders"])?;
        let host_header = headers.remove(HOST);
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(user_agent));
        headers
            .entry(ACCEPT)
            .or_insert(HeaderValue::from_static("*/*"));
        if headers.get(ACCEPT).is_some_and(HeaderValue::is_empty) {
            headers.remove(ACCEPT);
        }
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        Ok(Self {
            url: Url::new(secure, host, port, path),
            headers,
            host: host_header,
        })
    }

    /// Sends the request and follows redirects on the same host. Returns the status.
    pub(super) async fn send(&self) -> Result<u16, HttpError> {
        let mut url = self.url.clone();
        let mut host = self.host.clone();
        for _ in 0..=MAX_REDIRECTS {
            let sent = self.send_to(&url, host.as_ref()).await;
            let response = sent.map_err(|cause| HttpError::Get {
                url: url.text(),
                cause,
            })?;
            let Some(next) = redirect(&url, &response) else {
                let status = response.status().as_u16();
                read_body(response).await;
                return Ok(status);
            };
            if next.authority() != url.authority() {
                host = None;
            }
            url = next;
        }
        Err(HttpError::TooManyRedirects {
            url: url.text(),
            redirects: MAX_REDIRECTS,
        })
    }

    async fn send_to(
        &self,
        url: &Url,
        host: Option<&HeaderValue>,
    ) -> Result<Response<Body>, ExchangeError> {
        let stream = dial::connect(&url.host, url.port).await?;
        let stream: Box<dyn Duplex> = if url.secure {
            Box::new(handshake(stream, &url.host).await?)
        } else {
            Box::new(stream)
        };
        let host = match host {
            Some(host) => host.clone(),
            None => HeaderValue::try_from(url.authority())?,
        };
        let mut request = Request::get(&url.path).body(Empty::<Bytes>::new())?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().extend(self.headers.clone());
        exchange(stream, request).await.map_err(classify)
    }
}

/// Does not verify the server's certificate, like upstream's kubelet.
async fn handshake(stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, ExchangeError> {
    let name = ServerName::try_from(host.to_owned())?;
    let connected = unverified_tls::connector().connect(name, stream).await;
    connected.map_err(|error| {
        if error.to_string().contains("corrupt message") {
            ExchangeError::PlainHttp
        } else {
            ExchangeError::Tls(error)
        }
    })
}

/// A response's body, with the task that drives its connection.
struct Body {
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

async fn exchange(
    stream: Box<dyn Duplex>,
    request: Request<Empty<Bytes>>,
) -> Result<Response<Body>, hyper::Error> {
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a probe's connection ended");
        }
    }));
    let response = sender.send_request(request).await?;
    Ok(response.map(|body| Body {
        body,
        _connection: connection,
    }))
}

/// Reads the start of the body: some servers report an error when a client closes the connection before that.
async fn read_body(response: Response<Body>) {
    let mut response = response.into_body();
    let mut size = 0;
    while let Some(Ok(frame)) = response.body.frame().await {
        size += frame.data_ref().map_or(0, Bytes::len);
        if size >= MAX_BODY_BYTES {
            return;
        }
    }
}

fn redirect(url: &Url, response: &Response<Body>) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    url.redirect(location)
}

fn custom_headers(list: &Value) -> Result<HeaderMap, RequestError> {
    let mut headers = HeaderMap::new();
    for header in list.as_array().into_iter().flatten() {
        let name = header["name"].as_str().unwrap_or_default();
        let value = header["value"].as_str().unwrap_or_default();
        let parsed = HeaderName::try_from(name).ok().zip(value.parse().ok());
        let (name, value) = parsed.ok_or_else(|| RequestError::Header(name.to_owned()))?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn classify(error: hyper::Error) -> ExchangeError {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(error) = inner.downcast_ref::<io::Error>() {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => ExchangeError::Eof,
                _ => ExchangeError::Read(dial::kernel_text(error)),
            };
        }
        cause = inner.source();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        ExchangeError::Eof
    } else if error.is_parse() {
        ExchangeError::Malformed
    } else {
        ExchangeError::Http(error)
    }
}
