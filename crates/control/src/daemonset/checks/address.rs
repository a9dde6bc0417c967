//! The servers that checks may query, parsed from flags.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;

/// A flag that names no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("not a URL such as http://prometheus.monitoring:9090")]
    Url,
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    #[error("the URL must not have a query; the controller appends /api/v1/query")]
    Query,
    #[error(
        "user names and passwords do not belong on a command line, where every user of the machine sees them"
    )]
    UserInfo,
    #[error(
        "not a host such as gate.example.com or gate.example.com:8443; wildcards and URLs are not allowed"
    )]
    Host,
}

/// The base URL of a Prometheus server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusUrl(Uri);

impl PrometheusUrl {
    /// Of instant queries.
    pub(super) fn query(&self) -> Uri {
        let base = self.0.path().trim_end_matches('/');
        let mut parts = self.0.clone().into_parts();
        parts.path_and_query = format!("{base}/api/v1/query").parse().ok();
        Uri::from_parts(parts).expect("a URL with scheme and authority takes any path")
    }
}

impl FromStr for PrometheusUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url: Uri = text.parse().map_err(|_| AddressError::Url)?;
        let authority = url.authority().ok_or(AddressError::Url)?;
        if !matches!(url.scheme_str(), Some("http" | "https")) {
            return Err(AddressError::Scheme);
        }
        if authority.as_str().contains('@') {
            return Err(AddressError::UserInfo);
        }
        if url.query().is_some() {
            return Err(AddressError::Query);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for PrometheusUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A host that webhooks may be on: any of its ports, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckHost {
    host: String,
    port: Option<u16>,
}

impl CheckHost {
    pub(super) fn allows(&self, url: &Uri) -> bool {
        let default = match url.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return false,
        };
        let port = url.port_u16().unwrap_or(default);
        let host = url.host().unwrap_or_default();
        host.eq_ignore_ascii_case(&self.host) && self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for CheckHost {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let found: Authority = text.parse().map_err(|_| AddressError::Host)?;
        if text.contains('@') {
            return Err(AddressError::UserInfo);
        }
        let host = found.host().to_owned();
        let port = found.port_u16();
        let has_port = text.len() > host.len();
        if host.is_empty() || host.contains('*') || port.is_some() != has_port {
            return Err(AddressError::Host);
        }
        Ok(Self { host, port })
    }
}
