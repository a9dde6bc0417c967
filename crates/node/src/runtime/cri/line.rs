//! The line to a runtime: one connection over its socket, made anew when it breaks.
//!
//! Tells apart a runtime that does not answer (nothing is known then) from one that says no.

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

/// How long a runtime may take for what takes it no time of its own.
const PATIENCE: Duration = Duration::from_mins(2);
/// Where containerd keeps what its CRI makes.
pub(super) const NAMESPACE: &str = "k8s.io";
/// As large as containerd makes answers.
const MOST_BYTES: usize = 16 << 20;

/// An answer as it came.
pub(super) type Answer<T> = std::result::Result<T, Status>;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Line {
    channel: Channel,
    socket: PathBuf,
}

impl Line {
    /// A line to this socket. Nothing is asked yet.
    pub(super) fn new(socket: &Path) -> Self {
        let path = socket.to_owned();
        let connector = service_fn(move |_: Uri| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        // The name is never looked up: the connector knows where to go.
        let endpoint = Endpoint::from_static("http://runtime");
        Self {
            channel: endpoint.connect_with_connector_lazy(connector),
            socket: socket.to_owned(),
        }
    }

    /// Asks, and waits for the answer as long as is reasonable.
    pub(super) async fn ask<C: Call>(&self, call: C) -> Result<C::Answer> {
        self.ask_within(call, PATIENCE).await
    }

    /// Asks for something that may take some time of its own, on top of what is reasonable.
    pub(super) async fn ask_longer<C: Call>(&self, call: C, longer: Duration) -> Result<C::Answer> {
        self.ask_within(call, PATIENCE.saturating_add(longer)).await
    }

    async fn ask_within<C: Call>(&self, call: C, limit: Duration) -> Result<C::Answer> {
        let Ok(answer) = tokio::time::timeout(limit, self.ask_twice(call)).await else {
            return Err(self.silent(&format!("no answer within {} s", limit.as_secs())));
        };
        answer.map_err(|status| self.sort(&status))
    }

    /// A runtime that was started anew is noticed by the first question that fails. All that is asked this way
    /// may be asked twice: what was done is then found done.
    async fn ask_twice<C: Call>(&self, call: C) -> Answer<C::Answer> {
        match self.ask_plainly(call.clone()).await {
            Err(status) if status.source().is_some() => self.ask_plainly(call).await,
            answer => answer,
        }
    }

    /// Asks once, and waits for ever; with the answer as it came.
    pub(super) async fn ask_plainly<C: Call>(&self, call: C) -> Answer<C::Answer> {
        let mut client = self.client().await?;
        let codec = ProstCodec::<C, C::Answer>::default();
        let path = PathAndQuery::from_static(C::PATH);
        let mut request = Request::new(call);
        // What containerd's own services look at; its CRI does not.
        let namespace = MetadataValue::from_static(NAMESPACE);
        request
            .metadata_mut()
            .insert("containerd-namespace", namespace);
        let answer = client.unary(request, path, codec).await?;
        Ok(answer.into_inner())
    }

    /// Subscribes to containerd's events.
    pub(super) async fn subscribe(&self, filters: Vec<String>) -> Answer<Streaming<Envelope>> {
        let mut client = self.client().await?;
        let codec = ProstCodec::<SubscribeRequest, Envelope>::default();
        let path = PathAndQuery::from_static(SUBSCRIBE);
        let request = Request::new(SubscribeRequest { filters });
        let answer = client.server_streaming(request, path, codec).await?;
        Ok(answer.into_inner())
    }

    async fn client(&self) -> Answer<Grpc<Channel>> {
        let mut client = Grpc::new(self.channel.clone()).max_decoding_message_size(MOST_BYTES);
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(client)
    }

    /// What a refusal means.
    pub(super) fn sort(&self, status: &Status) -> Error {
        let message = status.message().to_owned();
        match status.code() {
            // With a source it is our end that speaks: the line broke.
            _ if status.source().is_some() => self.silent(&causes(status)),
            Code::Unavailable | Code::Cancelled => self.silent(&message),
            // What containerd says until it has taken up its containers again.
            _ if message.contains("server is not initialized yet") => self.silent(&message),
            Code::NotFound => Error::NotFound(message),
            Code::DeadlineExceeded => Error::TimedOut(message),
            _ => Error::Failed(message),
        }
    }

    fn silent(&self, why: &str) -> Error {
        let socket = self.socket.display();
        Error::Unavailable(format!(
            "the container runtime at {socket} does not answer: {why}"
        ))
    }
}

/// What went wrong, down to the cause.
fn causes(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut next = status.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
