//! The gRPC connection to a runtime over its socket, which reconnects when it breaks.
//!
//! Distinguishes a runtime that does not respond, after which the outcome is unknown, from one that refuses.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::api::{Call, Envelope, SUBSCRIBE, SubscribeRequest};
use crate::runtime::{Error, Result};

/// The timeout of calls.
const CALL_TIMEOUT: Duration = Duration::from_mins(2);
/// The containerd namespace of the CRI plugin.
pub(super) const NAMESPACE: &str = "k8s.io";
/// containerd's own limit.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The unclassified result of a call.
pub(super) type RawResult<T> = std::result::Result<T, Status>;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Connection {
    channel: Channel,
    socket: PathBuf,
}

impl Connection {
    /// Connects lazily, with the first call.
    pub(super) fn new(socket: &Path) -> Self {
        let path = socket.to_owned();
        let connector = service_fn(move |_: Uri| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        // The connector ignores the name.
        let endpoint = Endpoint::from_static("http://runtime");
        Self {
            channel: endpoint.connect_with_connector_lazy(connector),
            socket: socket.to_owned(),
        }
    }

    /// Makes a call with the usual timeout.
    pub(super) async fn call<C: Call>(&self, call: C) -> Result<C::Response> {
        self.call_within(call, CALL_TIMEOUT).await
    }

    /// Makes a call with a longer timeout.
    pub(super) async fn call_with_extra_time<C: Call>(
        &self,
        call: C,
        extra: Duration,
    ) -> Result<C::Response> {
        self.call_within(call, CALL_TIMEOUT.saturating_add(extra))
            .await
    }

    async fn call_within<C: Call>(&self, call: C, limit: Duration) -> Result<C::Response> {
        let Ok(response) = tokio::time::timeout(limit, self.call_with_retry(call)).await else {
            return Err(self.unavailable(&format!("no answer within {} s", limit.as_secs())));
        };
        response.map_err(|status| self.classify(&status))
    }

    /// Retries once when the connection is broken, as it is after a restart of the runtime. All calls made this way are
    /// idempotent.
    async fn call_with_retry<C: Call>(&self, call: C) -> RawResult<C::Response> {
        match self.call_once(call.clone()).await {
            Err(status) if status.source().is_some() => self.call_once(call).await,
            result => result,
        }
    }

    /// Makes a call without timeout and retry.
    pub(super) async fn call_once<C: Call>(&self, call: C) -> RawResult<C::Response> {
        let mut client = self.client().await?;
        let codec = ProstCodec::<C, C::Response>::default();
        let path = PathAndQuery::from_static(C::PATH);
        let mut request = Request::new(call);
        // Read by containerd's own services, ignored by its CRI plugin.
        let namespace = MetadataValue::from_static(NAMESPACE);
        request
            .metadata_mut()
            .insert("containerd-namespace", namespace);
        let response = client.unary(request, path, codec).await?;
        Ok(response.into_inner())
    }

    /// Subscribes to containerd's events.
    pub(super) async fn subscribe(&self, filters: Vec<String>) -> RawResult<Streaming<Envelope>> {
        let mut client = self.client().await?;
        let codec = ProstCodec::<SubscribeRequest, Envelope>::default();
        let path = PathAndQuery::from_static(SUBSCRIBE);
        let request = Request::new(SubscribeRequest { filters });
        let response = client.server_streaming(request, path, codec).await?;
        Ok(response.into_inner())
    }

    async fn client(&self) -> RawResult<Grpc<Channel>> {
        let mut client =
            Grpc::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(client)
    }

    pub(super) fn classify(&self, status: &Status) -> Error {
        let message = status.message().to_owned();
        match status.code() {
            // A source means that the connection failed on our side.
            _ if status.source().is_some() => self.unavailable(&causes(status)),
            Code::Unavailable | Code::Cancelled => self.unavailable(&message),
            // containerd says so until it has recovered its containers.
            _ if message.contains("server is not initialized yet") => self.unavailable(&message),
            Code::NotFound => Error::NotFound(message),
            Code::DeadlineExceeded => Error::TimedOut(message),
            _ => Error::Failed(message),
        }
    }

    fn unavailable(&self, why: &str) -> Error {
        let socket = self.socket.display();
        Error::Unavailable(format!(
            "the container runtime at {socket} does not answer: {why}"
        ))
    }
}

/// The message, with the last cause if it does not say that already.
fn causes(status: &Status) -> String {
    let message = status.message();
    let causes = std::iter::successors(status.source(), |cause| (*cause).source());
    match causes.last().map(ToString::to_string) {
        Some(cause) if !message.contains(&cause) => format!("{message}: {cause}"),
        _ => message.to_owned(),
    }
}
