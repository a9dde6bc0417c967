//! Calls to etcd: chooses a member that answers, logs in, and gives every call a deadline.
//!
//! One channel for each member, and a choice of our own: a balanced channel may keep choosing a member that has stopped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::connection;
use super::error::{CallError, EtcdError};
use super::options::{EtcdOptions, EtcdUser};
use super::proto::{
    AuthenticateRequest, Call, KEEP_ALIVE, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    RangeRequest, RangeResponse, TxnRequest, TxnResponse, WATCH, WatchRequest, WatchResponse,
};
use super::tls::Tls;

/// Above any fragment of a watch, and above most pages of the start; the others are read again in parts.
const MESSAGE_BYTES_MAX: usize = 32 << 20;
/// The pause before a call is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long one of several members may take.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the first response of a stream may take.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Client {
    members: Vec<Channel>,
    /// The member that calls go to.
    current: AtomicUsize,
    user: Option<EtcdUser>,
    token: RwLock<Option<MetadataValue<Ascii>>>,
}

impl Client {
    /// Connects lazily. Must be called within a runtime.
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, EtcdError> {
        let tls = options.tls.as_ref().map(Tls::load).transpose()?;
        let tls = tls.map(Arc::new);
        if tls.is_none()
            && let Some(remote) = options.endpoints.remote()
        {
            return Err(EtcdError::PlainRemote(remote.to_owned()));
        }
        let members = options.endpoints.iter();
        let members = members.map(|member| connection::channel(member, tls.as_ref()));
        Ok(Self {
            members: members.collect::<Result<_, _>>()?,
            current: AtomicUsize::new(0),
            user: options.user.clone(),
            token: RwLock::default(),
        })
    }

    /// Makes a call; repeats it on other members, if it was not done or may be done twice, until so much time has passed.
    pub(super) async fn call<C: Call>(
        &self,
        request: C,
        within: Duration,
    ) -> Result<C::Response, CallError> {
        let deadline = Instant::now() + within;
        let mut has_logged_in = false;
        loop {
            let at = self.current.load(Ordering::Relaxed);
            let failed = match self.call_member(at, request.clone(), deadline).await {
                Err(CallError::Login(_)) if !has_logged_in && self.user.is_some() => {
                    has_logged_in = true;
                    self.log_in(at, deadline).await?;
                    continue;
                }
                Err(failed) => failed,
                Ok(response) => return Ok(response),
            };
            if failed.is_of_member() {
                self.leave(at);
            }
            let may_repeat = match failed {
                CallError::NotDone(_) => true,
                CallError::Unclear(_) => C::IS_IDEMPOTENT,
                _ => false,
            };
            if !may_repeat || Instant::now() + RETRY_PAUSE >= deadline {
                return Err(failed);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// A range, and the id of the cluster that it was read from.
    pub(super) async fn range(
        &self,
        request: RangeRequest,
        within: Duration,
    ) -> Result<RangeResponse, CallError> {
        self.call(request, within).await
    }

    pub(super) async fn transact(
        &self,
        request: TxnRequest,
        within: Duration,
    ) -> Result<TxnResponse, CallError> {
        self.call(request, within).await
    }

    async fn call_member<C: Call>(
        &self,
        at: usize,
        request: C,
        deadline: Instant,
    ) -> Result<C::Response, CallError> {
        if self.user.is_some() && self.token().is_none() {
            self.log_in(at, deadline).await?;
        }
        self.call_once(at, request, deadline).await
    }

    async fn call_once<C: Call>(
        &self,
        at: usize,
        request: C,
        deadline: Instant,
    ) -> Result<C::Response, CallError> {
        let calling = async {
            let mut client = self.member(at).await?;
            let codec = ProstCodec::<C, C::Response>::default();
            let path = PathAndQuery::from_static(C::PATH);
            client.unary(self.request(request), path, codec).await
        };
        let started = Instant::now();
        let limit = if self.members.len() > 1 {
            deadline.min(started + MEMBER_TIMEOUT)
        } else {
            deadline
        };
        match tokio::time::timeout_at(limit, calling).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(CallError::of(&status)),
            Err(_) => Err(CallError::Unclear(format!(
                "no answer within {:.1} s",
                started.elapsed().as_secs_f64()
            ))),
        }
    }

    async fn log_in(&self, at: usize, deadline: Instant) -> Result<(), CallError> {
        let Some(user) = &self.user else {
            return Ok(());
        };
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = None;
        let request = AuthenticateRequest {
            name: user.name.clone(),
            password: user.password.clone(),
        };
        let response = self.call_once(at, request, deadline).await;
        // Not done: the call that it was for has not begun.
        let response = response.map_err(|error| match error {
            CallError::Unclear(text) => CallError::NotDone(text),
            other => other,
        })?;
        let token = response.token.parse::<MetadataValue<Ascii>>();
        let token =
            token.map_err(|_| CallError::Refused("etcd gave a strange token".to_owned()))?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(())
    }

    fn token(&self) -> Option<MetadataValue<Ascii>> {
        let token = self.token.read().unwrap_or_else(PoisonError::into_inner);
        token.clone()
    }

    fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        // A member without a leader refuses at once.
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = self.token() {
            metadata.insert("token", token);
        }
        request
    }

    async fn member(&self, at: usize) -> Result<Grpc<Channel>, Status> {
        let channel = self.members[at % self.members.len()].clone();
        let mut client = Grpc::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let ready = client.ready().await;
        ready.map_err(|error| Status::from_error(Box::new(error)))?;
        Ok(client)
    }

    /// Chooses another member, unless somebody has already.
    fn leave(&self, at: usize) {
        let next = (at + 1) % self.members.len();
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        // An error means that another call has chosen.
        let _chosen = self.current.compare_exchange(at, next, success, failure);
    }

    /// Starts a watch; the first response is still to come.
    pub(super) async fn watch(
        &self,
        request: WatchRequest,
    ) -> Result<Streaming<WatchResponse>, CallError> {
        self.stream(WATCH, request).await
    }

    /// Keeps a lease alive; answers how many seconds it has, 0 if there is none.
    pub(super) async fn keep_alive(&self, lease: i64) -> Result<i64, CallError> {
        let request = LeaseKeepAliveRequest { id: lease };
        let keeping = async {
            let mut responses: Streaming<LeaseKeepAliveResponse> =
                self.stream(KEEP_ALIVE, request).await?;
            let response = responses.message().await;
            let response = response.map_err(|status| CallError::of(&status))?;
            let ended = || CallError::Unclear("the stream has ended".to_owned());
            response.map(|response| response.ttl).ok_or_else(ended)
        };
        let kept = tokio::time::timeout(STREAM_TIMEOUT, keeping).await;
        kept.unwrap_or_else(|_| Err(CallError::Unclear("no answer in time".to_owned())))
    }

    async fn stream<Q, R>(&self, path: &'static str, first: Q) -> Result<Streaming<R>, CallError>
    where
        Q: prost::Message + 'static,
        R: prost::Message + Default + 'static,
    {
        let at = self.current.load(Ordering::Relaxed);
        let deadline = Instant::now() + STREAM_TIMEOUT;
        if self.user.is_some() && self.token().is_none() {
            self.log_in(at, deadline).await?;
        }
        let starting = async {
            let mut client = self.member(at).await?;
            let codec = ProstCodec::<Q, R>::default();
            let path = PathAndQuery::from_static(path);
            // etcd ends the stream when its client does.
            let requests = stream::once(std::future::ready(first)).chain(stream::pending());
            client.streaming(self.request(requests), path, codec).await
        };
        let failed = match tokio::time::timeout_at(deadline, starting).await {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(status)) => CallError::of(&status),
            Err(_) => CallError::Unclear("no answer in time".to_owned()),
        };
        if matches!(failed, CallError::Login(_)) {
            *self.token.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        if failed.is_of_member() {
            self.leave(at);
        }
        Err(failed)
    }

    /// Lets the next call go to another member.
    pub(super) fn choose_another(&self) {
        self.leave(self.current.load(Ordering::Relaxed));
    }
}
