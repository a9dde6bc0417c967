//! A client of the API whose certificate can be replaced while it is in use.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use kennel_client::connection::{self, Origin};
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::BoxError;

use super::{Certificate, IdentityError, unusable};

#[derive(Debug)]
pub enum Credentials<'a> {
    Certificate(&'a Certificate),
    Token(&'a str),
}

/// Follows the certificate authorities that it is given.
#[derive(Clone)]
pub struct RotatingClient {
    server: String,
    current: Arc<RwLock<Current>>,
}

struct Current {
    client: Client,
    ca_pem: String,
    /// None with a token, which is not replaced.
    certificate: Option<Certificate>,
    /// Cancelled when the connections of its requests no longer work.
    connections: CancellationToken,
}

impl RotatingClient {
    pub fn new(
        server: &str,
        ca_pem: &str,
        credentials: &Credentials<'_>,
    ) -> Result<Self, IdentityError> {
        let client = fixed_client(server, ca_pem, credentials)?;
        let certificate = match credentials {
            Credentials::Certificate(certificate) => Some((*certificate).clone()),
            Credentials::Token(_) => None,
        };
        Ok(Self {
            server: server.to_owned(),
            current: Arc::new(RwLock::new(Current {
                client,
                ca_pem: ca_pem.to_owned(),
                certificate,
                connections: CancellationToken::new(),
            })),
        })
    }

    /// New requests use this certificate; requests in flight keep theirs.
    pub fn set_certificate(&self, certificate: &Certificate) -> Result<(), IdentityError> {
        self.replace(|current| current.certificate = Some(certificate.clone()))
    }

    /// New requests trust these authorities.
    pub fn set_authorities(&self, ca_pem: &str) -> Result<(), IdentityError> {
        self.replace(|current| ca_pem.clone_into(&mut current.ca_pem))
    }

    /// Fails all requests and watches in flight, and connects anew. For a machine whose address has changed: packets of its
    /// connections have the old address, and nobody answers them.
    pub fn reconnect(&self) -> Result<(), IdentityError> {
        let mut old = CancellationToken::new();
        self.replace(|current| old = std::mem::take(&mut current.connections))?;
        old.cancel();
        Ok(())
    }

    fn replace(&self, change: impl FnOnce(&mut Current)) -> Result<(), IdentityError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Current {
            client: current.client.clone(),
            ca_pem: current.ca_pem.clone(),
            certificate: current.certificate.clone(),
            connections: current.connections.clone(),
        };
        change(&mut next);
        if let Some(certificate) = &next.certificate {
            let credentials = Credentials::Certificate(certificate);
            next.client = fixed_client(&self.server, &next.ca_pem, &credentials)?;
        }
        *current = next;
        Ok(())
    }

    /// A client that always uses the newest certificate.
    pub fn client(&self) -> Client {
        let current = Arc::clone(&self.current);
        let service = tower::service_fn(move |request: Request<Body>| {
            let current = current.read().unwrap_or_else(PoisonError::into_inner);
            let (client, connections) = (current.client.clone(), current.connections.clone());
            drop(current);
            async move {
                let response = tokio::select! {
                    response = client.send(request) => response?,
                    () = connections.cancelled() => return Err(BoxError::from(disconnected())),
                };
                Ok(response.map(|body| ConnectedBody::new(body, connections)))
            }
        });
        Client::new(service, "default")
    }
}

fn disconnected() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the address of this machine has changed",
    )
}

/// The body of a response, which fails when its connection no longer works.
struct ConnectedBody {
    body: Body,
    disconnected: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl ConnectedBody {
    fn new(body: Body, connections: CancellationToken) -> Self {
        Self {
            body,
            disconnected: Box::pin(connections.cancelled_owned()),
        }
    }
}

impl HttpBody for ConnectedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let disconnected = self.disconnected.as_mut().poll(context);
        disconnected.map(|()| Some(Err(BoxError::from(self::disconnected()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A client whose credentials do not change.
pub(super) fn fixed_client(
    server: &str,
    ca_pem: &str,
    credentials: &Credentials<'_>,
) -> Result<Client, IdentityError> {
    let what = format!("cannot make a client of {server}");
    let url = server.parse::<http::Uri>();
    let mut config = Config::new(url.map_err(unusable(&what))?);
    let roots = CertificateDer::pem_slice_iter(ca_pem.as_bytes());
    let roots: Result<Vec<_>, _> = roots.map(|der| der.map(|der| der.to_vec())).collect();
    config.root_cert = Some(roots.map_err(unusable(&what))?);
    config.auth_info = auth_info(credentials);
    connection::client(config, Origin::Joined).map_err(unusable(&what))
}

fn auth_info(credentials: &Credentials<'_>) -> AuthInfo {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    match credentials {
        Credentials::Token(token) => AuthInfo {
            token: Some((*token).to_owned().into()),
            ..AuthInfo::default()
        },
        Credentials::Certificate(certificate) => AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&certificate.chain_pem)),
            client_key_data: Some(STANDARD.encode(&certificate.key_pem).into()),
            ..AuthInfo::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;

    /// Answers `GET /watch` with headers alone, and other requests not at all. Says when it has read a request.
    async fn server(requests: mpsc::Sender<()>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let requests = requests.clone();
                tokio::spawn(async move {
                    let mut read = Vec::new();
                    while socket.read_buf(&mut read).await.unwrap() > 0 {
                        if !read.ends_with(b"\r\n\r\n") {
                            continue;
                        }
                        if read.starts_with(b"GET /watch ") {
                            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
                            socket.write_all(head).await.unwrap();
                        }
                        requests.send(()).await.unwrap();
                        read.clear();
                    }
                });
            }
        });
        url
    }

    #[tokio::test]
    async fn n1_5_requests_in_flight_fail_when_the_address_changes_and_later_ones_connect() {
        let (sender, mut requests) = mpsc::channel(8);
        let url = server(sender).await;
        let rotating = RotatingClient::new(&url, "", &Credentials::Token("t")).unwrap();
        let get = |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let client = rotating.client();
            tokio::spawn(async move { client.send(request).await })
        };
        let watch = get("/watch").await.unwrap().unwrap();
        let watch = tokio::spawn(watch.into_body().collect());
        let silent = get("/silent");
        for _ in 0..2 {
            requests.recv().await.unwrap();
        }
        rotating.reconnect().unwrap();
        let silent = silent.await.unwrap().unwrap_err();
        let text = connection::describe(&silent);
        assert_eq!(text, "the address of this machine has changed");
        assert!(watch.await.unwrap().is_err());
        let again = get("/watch").await.unwrap();
        assert_eq!(again.unwrap().status(), 200);
    }
}
