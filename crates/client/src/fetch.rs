//! One request to a server that is no Kubernetes API, over HTTP or HTTPS: bounded in time and size, sent once, without
//! following redirects. For HTTPS the system's certificates count, or those of `$SSL_CERT_FILE`.

use std::error::Error;
use std::time::Duration;

use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::{Client, Config};

/// A POST.
#[derive(Clone, Debug)]
pub struct Post {
    /// With scheme and host.
    pub url: Uri,
    pub content_type: &'static str,
    pub body: String,
}

/// What bounds an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From connecting to the end of the response.
    pub timeout: Duration,
    /// Of the response's body, in bytes. What is longer is not read.
    pub body: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Up to the limit.
    pub body: Vec<u8>,
    /// The body is longer than that.
    pub is_cut: bool,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the URL {0} is not complete")]
    Url(Uri),
    #[error("cannot set up a connection: {0}")]
    Setup(String),
    #[error("no answer within {} seconds", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("{0}")]
    Connection(String),
}

/// Sends a request and reads its response.
pub async fn post(post: Post, limits: Limits) -> Result<Response, FetchError> {
    let exchange = exchange(post, limits.body);
    let answered = tokio::time::timeout(limits.timeout, exchange).await;
    answered.unwrap_or(Err(FetchError::Timeout(limits.timeout)))
}

async fn exchange(post: Post, limit: usize) -> Result<Response, FetchError> {
    let client = client(&post.url)?;
    let path = post.url.path_and_query().map_or("/", PathAndQuery::as_str);
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(header::CONTENT_TYPE, post.content_type)
        .header(header::ACCEPT, "application/json")
        .body(Body::from(post.body.into_bytes()))
        .map_err(|_| FetchError::Url(post.url.clone()))?;
    let response = client.send(request).await;
    let response = response.map_err(|error| FetchError::Connection(cause(&error)))?;
    let status = response.status().as_u16();
    let mut stream = response.into_body();
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(|error| FetchError::Connection(cause(&error)))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let room = limit - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(Response {
        status,
        body,
        is_cut,
    })
}

/// A client of this server alone.
fn client(url: &Uri) -> Result<Client, FetchError> {
    let parts = url.scheme_str().zip(url.authority());
    let server = parts.and_then(|(scheme, authority)| {
        let server = Uri::builder().scheme(scheme).authority(authority.as_str());
        server.path_and_query("/").build().ok()
    });
    let mut config = Config::new(server.ok_or_else(|| FetchError::Url(url.clone()))?);
    config.default_retry = false;
    if url.scheme_str() == Some("http") {
        // Without TLS the system needs no certificates.
        config.root_cert = Some(Vec::new());
    }
    Client::try_from(config).map_err(|error| FetchError::Setup(cause(&error)))
}

/// The innermost cause of an error, which says most.
fn cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
