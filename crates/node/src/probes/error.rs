//! Why probes and hooks fail, in the words of upstream's kubelet and of Go's network library.

use std::error::Error;
use std::net::SocketAddr;

use crate::pods::traits::ProbeError;

/// An error and its causes in one line, as Go prints them.
pub(super) fn message(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}

/// The spec does not lead to an address and port.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("the pod has no address")]
    NoAddress,
    #[error("strconv.Atoi: parsing {0:?}: invalid syntax")]
    PortName(String),
    #[error("invalid port number: {0}")]
    PortNumber(String),
}

impl From<TargetError> for ProbeError {
    fn from(error: TargetError) -> Self {
        Self::Unknown(error.to_string())
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("dial tcp: lookup {host}: no such host")]
    Lookup { host: String },
    /// `reason` is the kernel's error text.
    #[error("dial tcp {address}: connect: {reason}")]
    Connect { address: SocketAddr, reason: String },
    /// `address` is host and port.
    #[error("dial tcp {address}: i/o timeout")]
    Timeout { address: String },
}

/// The spec's action is not a request that can be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("invalid header {0:?}")]
    Header(String),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("Get {url:?}")]
    Get {
        url: String,
        #[source]
        cause: ExchangeError,
    },
    #[error(
        "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    )]
    Timeout { url: String },
    #[error("Get {url:?}: stopped after {redirects} redirects")]
    TooManyRedirects { url: String, redirects: usize },
}

/// Why one request got no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    ServerName(#[from] rustls::pki_types::InvalidDnsNameError),
    #[error("http: server gave HTTP response to HTTPS client")]
    PlainHttp,
    #[error("tls: {0}")]
    Tls(std::io::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    HostHeader(#[from] http::header::InvalidHeaderValue),
    #[error("EOF")]
    Eof,
    /// The kernel's error text.
    #[error("read: {0}")]
    Read(String),
    #[error("net/http: HTTP/1.x transport connection broken: malformed HTTP response")]
    Malformed,
    #[error("{0}")]
    Http(hyper::Error),
}
