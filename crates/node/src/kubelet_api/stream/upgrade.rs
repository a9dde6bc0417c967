//! Negotiates the streaming protocol of an upgrade request.

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::spdy;
use crate::kubelet_api::response::{HttpError, HttpResponse};

/// Negotiates the subprotocol over SPDY.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kubelet_api) enum StreamUse {
    /// Exec or attach.
    Session,
    PortForward,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Spdy,
    WebSocket,
}

/// The negotiated protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kubelet_api) struct Upgrade {
    pub(super) wire: Wire,
    protocol: &'static str,
    /// `Sec-WebSocket-Accept`.
    accept: Option<String>,
}

impl Upgrade {
    pub(in crate::kubelet_api) fn negotiate(
        headers: &HeaderMap,
        purpose: StreamUse,
    ) -> Result<Self, HttpError> {
        let has = |name: &HeaderName, value: &str| {
            let mut all = listed(headers, name);
            all.any(|listed| listed.eq_ignore_ascii_case(value))
        };
        let wire = if !has(&CONNECTION, "upgrade") {
            None
        } else if has(&UPGRADE, spdy::PROTOCOL) {
            Some(Wire::Spdy)
        } else if has(&UPGRADE, "websocket") && has(&SEC_WEBSOCKET_VERSION, "13") {
            Some(Wire::WebSocket)
        } else {
            None
        };
        let Some(wire) = wire else {
            let text = "unable to upgrade: missing upgrade headers in request";
            return Err(HttpError::bad_request(text));
        };
        let accept = match (wire, headers.get(SEC_WEBSOCKET_KEY)) {
            (Wire::Spdy, _) => None,
            (Wire::WebSocket, Some(key)) => Some(derive_accept_key(key.as_bytes())),
            (Wire::WebSocket, None) => {
                return Err(HttpError::bad_request("missing Sec-WebSocket-Key"));
            }
        };
        let protocol = choose(headers, wire, purpose)?;
        Ok(Self {
            wire,
            protocol,
            accept,
        })
    }

    pub(in crate::kubelet_api) fn response(&self) -> HttpResponse {
        let mut response = Response::new(Empty::new().boxed());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        let protocol = HeaderValue::from_static(self.protocol);
        match &self.accept {
            None => {
                headers.insert(UPGRADE, HeaderValue::from_static(spdy::PROTOCOL));
                headers.insert(STREAM_PROTOCOL, protocol);
            }
            Some(accept) => {
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
                let accept = HeaderValue::from_str(accept);
                headers.insert(SEC_WEBSOCKET_ACCEPT, accept.expect("it is base64"));
            }
        }
        response
    }
}

fn supported(wire: Wire, purpose: StreamUse) -> &'static [&'static str] {
    match (wire, purpose) {
        (Wire::Spdy, StreamUse::Session) => &["v4.channel.k8s.io"],
        (Wire::Spdy, StreamUse::PortForward) => &["portforward.k8s.io"],
        (Wire::WebSocket, StreamUse::Session) => &["v5.channel.k8s.io", "v4.channel.k8s.io"],
        (Wire::WebSocket, StreamUse::PortForward) => &["SPDY/3.1+portforward.k8s.io"],
    }
}

/// The first protocol of the client that we support.
fn choose(headers: &HeaderMap, wire: Wire, purpose: StreamUse) -> Result<&'static str, HttpError> {
    let name = match wire {
        Wire::Spdy => STREAM_PROTOCOL,
        Wire::WebSocket => SEC_WEBSOCKET_PROTOCOL,
    };
    let (theirs, ours) = (
        listed(headers, &name).collect::<Vec<_>>(),
        supported(wire, purpose),
    );
    let both = theirs
        .iter()
        .find_map(|their| ours.iter().find(|our| *our == their));
    both.copied().ok_or_else(|| {
        let (theirs, ours) = (theirs.join(" "), ours.join(" "));
        let text = format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{theirs}], server accepts [{ours}]"
        );
        HttpError::new(StatusCode::FORBIDDEN, text)
    })
}

/// All values of a header, which may have several lines with several values each.
fn listed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',').map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    const SPDY: [(&str, &str); 2] = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    const SOCKET: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    #[test]
    fn the_first_protocol_that_both_support_is_chosen() {
        let mut request = headers(&SPDY);
        for protocol in [
            "v5.channel.k8s.io",
            "v4.channel.k8s.io",
            "v3.channel.k8s.io",
        ] {
            request.append(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
        }
        let upgrade = Upgrade::negotiate(&request, StreamUse::Session).unwrap();
        let response = upgrade.response();
        assert_eq!(response.status(), 101);
        assert_eq!(
            response.headers()["x-stream-protocol-version"],
            "v4.channel.k8s.io"
        );
        assert_eq!(response.headers()["upgrade"], "SPDY/3.1");
    }

    /// The key and its answer are RFC 6455's own example.
    #[test]
    fn websocket_requests_are_accepted() {
        let mut request = headers(&SOCKET);
        let protocols = "v5.channel.k8s.io,v4.channel.k8s.io";
        request.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
        let response = Upgrade::negotiate(&request, StreamUse::Session)
            .unwrap()
            .response();
        assert_eq!(
            response.headers()["sec-websocket-accept"],
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
        assert_eq!(
            response.headers()["sec-websocket-protocol"],
            "v5.channel.k8s.io"
        );
    }

    #[test]
    fn failed_negotiations_are_explained() {
        let check = |headers: &HeaderMap, status: u16, words: &str| {
            let error = Upgrade::negotiate(headers, StreamUse::PortForward).unwrap_err();
            assert_eq!(error.status, status);
            assert!(error.text.contains(words), "{}", error.text);
        };
        check(&HeaderMap::new(), 400, "missing upgrade headers in request");
        check(
            &headers(&SPDY),
            403,
            "unable to negotiate protocol: client supports []",
        );
        check(
            &headers(&SOCKET),
            403,
            "server accepts [SPDY/3.1+portforward.k8s.io]",
        );
        check(&headers(&SOCKET[..3]), 400, "Sec-WebSocket-Key");
    }
}
