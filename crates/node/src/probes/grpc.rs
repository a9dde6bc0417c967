//! gRPC health checks: `grpc.health.v1.Health/Check`.

use std::time::Duration;

use serde_json::Value;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::dial::join;
use super::{ProbeError, Target};

/// Delay before the probe connects again, within its timeout: gRPC's own first back-off.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
const CHECK_METHOD: &str = "/grpc.health.v1.Health/Check";

/// `grpc.health.v1.HealthCheckRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// `grpc.health.v1.HealthCheckResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckResponse {
    #[prost(enumeration = "Health", tag = "1")]
    pub(super) status: i32,
}

/// `grpc.health.v1.HealthCheckResponse.ServingStatus`
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Health {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}

impl Health {
    fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Serving => "SERVING",
            Self::NotServing => "NOT_SERVING",
            Self::ServiceUnknown => "SERVICE_UNKNOWN",
        }
    }
}

/// Succeeds if the service reports `SERVING`.
pub(super) async fn probe(
    target: &Target<'_>,
    action: &Value,
    timeout: Duration,
) -> Result<(), ProbeError> {
    let host = target.host(&Value::Null)?;
    let port = target.port(&action["port"])?;
    let service = action["service"].as_str().unwrap_or_default();
    let deadline = tokio::time::Instant::now() + timeout;
    let address = join(&host, port);
    let connected = tokio::time::timeout_at(deadline, connect(&address)).await;
    let Ok(channel) = connected else {
        let within = go_duration(timeout);
        return Err(ProbeError::Failed(format!(
            "timeout: failed to connect service {address:?} within {within}: context deadline exceeded"
        )));
    };
    let channel = channel.map_err(|error| ProbeError::Unknown(error.to_string()))?;
    let response = tokio::time::timeout_at(deadline, check(channel, service)).await;
    let response = response.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
    match failure(response, timeout) {
        None => Ok(()),
        Some(why) => Err(ProbeError::Failed(why)),
    }
}

/// Retries until it succeeds, since the server may just be about to listen. Fails only for an invalid address.
async fn connect(address: &str) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .and_then(|endpoint| endpoint.user_agent("kube-probe/1.36"))?;
    loop {
        match endpoint.connect().await {
            Ok(channel) => return Ok(channel),
            Err(error) => tracing::debug!(%error, address, "a gRPC probe cannot connect"),
        }
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}

async fn check(channel: Channel, service: &str) -> Result<HealthCheckResponse, Status> {
    let mut client = Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let request = Request::new(HealthCheckRequest {
        service: service.to_owned(),
    });
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let path = PathAndQuery::from_static(CHECK_METHOD);
    let response = client.unary(request, path, codec).await?;
    Ok(response.into_inner())
}

/// Why the probe failed; none if it succeeded.
fn failure(response: Result<HealthCheckResponse, Status>, timeout: Duration) -> Option<String> {
    match response {
        Ok(response) if response.status() == Health::Serving => None,
        Ok(response) => {
            let status = response.status().name();
            Some(format!("service unhealthy (responded with {status:?})"))
        }
        Err(status) => Some(match status.code() {
            Code::Unimplemented => format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                status.message()
            ),
            Code::DeadlineExceeded | Code::Cancelled => {
                let within = go_duration(timeout);
                format!("timeout: health rpc did not complete within {within}")
            }
            code => format!(
                "error: health rpc probe failed: rpc error: code = {code:?} desc = {}",
                status.message()
            ),
        }),
    }
}

/// A duration as Go prints it.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
