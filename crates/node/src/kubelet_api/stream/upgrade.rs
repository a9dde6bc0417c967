//! Agreeing on a protocol: what a client asks for, and which of it we speak.

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::spdy;
use crate::kubelet_api::answer::{Answer, Refusal};

/// By which clients and servers of SPDY streams agree on what the streams are.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// What streams are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kubelet_api) enum Use {
    /// A command, or a container's own streams.
    Command,
    /// Ports.
    Forward,
}

/// How bytes are put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Spdy,
    WebSocket,
}

/// What both sides agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kubelet_api) struct Upgrade {
    pub(super) wire: Wire,
    protocol: &'static str,
    /// What a WebSocket client wants to hear to know that it was understood.
    accept: Option<String>,
}

impl Upgrade {
    /// Agrees with a client, or says why not.
    pub(in crate::kubelet_api) fn agree(
        headers: &HeaderMap,
        purpose: Use,
    ) -> Result<Self, Refusal> {
        let asked = |name: &HeaderName, what: &str| {
            let mut all = listed(headers, name);
            all.any(|value| value.eq_ignore_ascii_case(what))
        };
        let wire = if !asked(&CONNECTION, "upgrade") {
            None
        } else if asked(&UPGRADE, spdy::PROTOCOL) {
            Some(Wire::Spdy)
        } else if asked(&UPGRADE, "websocket") && asked(&SEC_WEBSOCKET_VERSION, "13") {
            Some(Wire::WebSocket)
        } else {
            None
        };
        let Some(wire) = wire else {
            let text = "unable to upgrade: missing upgrade headers in request";
            return Err(Refusal::bad(text));
        };
        let accept = match (wire, headers.get(SEC_WEBSOCKET_KEY)) {
            (Wire::Spdy, _) => None,
            (Wire::WebSocket, Some(key)) => Some(derive_accept_key(key.as_bytes())),
            (Wire::WebSocket, None) => return Err(Refusal::bad("missing Sec-WebSocket-Key")),
        };
        let protocol = choose(headers, wire, purpose)?;
        Ok(Self {
            wire,
            protocol,
            accept,
        })
    }

    /// The answer that says so.
    pub(in crate::kubelet_api) fn answer(&self) -> Answer {
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

/// What we speak.
fn spoken(wire: Wire, purpose: Use) -> &'static [&'static str] {
    match (wire, purpose) {
        (Wire::Spdy, Use::Command) => &["v4.channel.k8s.io"],
        (Wire::Spdy, Use::Forward) => &["portforward.k8s.io"],
        (Wire::WebSocket, Use::Command) => &["v5.channel.k8s.io", "v4.channel.k8s.io"],
        (Wire::WebSocket, Use::Forward) => &["SPDY/3.1+portforward.k8s.io"],
    }
}

/// The first of what a client speaks that we do, too.
fn choose(headers: &HeaderMap, wire: Wire, purpose: Use) -> Result<&'static str, Refusal> {
    let name = match wire {
        Wire::Spdy => STREAM_PROTOCOL,
        Wire::WebSocket => SEC_WEBSOCKET_PROTOCOL,
    };
    let (theirs, ours) = (
        listed(headers, &name).collect::<Vec<_>>(),
        spoken(wire, purpose),
    );
    let both = theirs
        .iter()
        .find_map(|their| ours.iter().find(|our| *our == their));
    both.copied().ok_or_else(|| {
        let (theirs, ours) = (theirs.join(" "), ours.join(" "));
        let text = format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{theirs}], server accepts [{ours}]"
        );
        Refusal::new(StatusCode::FORBIDDEN, text)
    })
}

/// All values of a header, of which one line may have several.
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
    fn the_first_protocol_that_both_speak_is_taken() {
        let mut asked = headers(&SPDY);
        for protocol in [
            "v5.channel.k8s.io",
            "v4.channel.k8s.io",
            "v3.channel.k8s.io",
        ] {
            asked.append(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
        }
        let agreed = Upgrade::agree(&asked, Use::Command).unwrap();
        let answer = agreed.answer();
        assert_eq!(answer.status(), 101);
        assert_eq!(
            answer.headers()["x-stream-protocol-version"],
            "v4.channel.k8s.io"
        );
        assert_eq!(answer.headers()["upgrade"], "SPDY/3.1");
    }

    /// The key and its answer are RFC 6455's own example.
    #[test]
    fn websocket_clients_hear_that_they_were_understood() {
        let mut asked = headers(&SOCKET);
        let protocols = "v5.channel.k8s.io,v4.channel.k8s.io";
        asked.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
        let answer = Upgrade::agree(&asked, Use::Command).unwrap().answer();
        assert_eq!(
            answer.headers()["sec-websocket-accept"],
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
        assert_eq!(
            answer.headers()["sec-websocket-protocol"],
            "v5.channel.k8s.io"
        );
    }

    #[test]
    fn what_cannot_be_agreed_on_is_said() {
        let check = |headers: &HeaderMap, status: u16, words: &str| {
            let refusal = Upgrade::agree(headers, Use::Forward).unwrap_err();
            assert_eq!(refusal.status, status);
            assert!(refusal.text.contains(words), "{}", refusal.text);
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
