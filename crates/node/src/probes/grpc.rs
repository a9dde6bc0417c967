//! gRPC health checks: `grpc.health.v1.Health/Check`.

use std::time::Duration;

use serde_json::Value;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::dial::join;
use super::{Target, Unwell};

/// How long to wait before connecting again, within the time of the probe: gRPC's own first back-off.
const AGAIN: Duration = Duration::from_secs(1);
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// What is asked: `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// What is answered: `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckResponse {
    #[prost(enumeration = "Health", tag = "1")]
    pub(super) status: i32,
}

/// How a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Health {
    /// It does not say.
    Unknown = 0,
    /// Well.
    Serving = 1,
    /// Not well.
    NotServing = 2,
    /// It does not exist.
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

/// A probe by gRPC: it passes if the service says that it serves.
pub(super) async fn ask(
    target: &Target<'_>,
    action: &Value,
    timeout: Duration,
) -> Result<(), Unwell> {
    let host = target.host(&Value::Null).map_err(Unwell::Unknown)?;
    let port = target.port(&action["port"]).map_err(Unwell::Unknown)?;
    let service = action["service"].as_str().unwrap_or_default();
    let deadline = tokio::time::Instant::now() + timeout;
    let address = join(&host, port);
    let connected = tokio::time::timeout_at(deadline, connect(&address)).await;
    let Ok(channel) = connected else {
        let within = within(timeout);
        return Err(Unwell::Failed(format!(
            "timeout: failed to connect service {address:?} within {within}: context deadline exceeded"
        )));
    };
    let channel = channel.map_err(Unwell::Unknown)?;
    let answer = tokio::time::timeout_at(deadline, check(channel, service)).await;
    let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
    judge(answer, timeout).map_err(Unwell::Failed)
}

/// Connects, again and again: a server that is just about to listen is waited for.
async fn connect(address: &str) -> Result<Channel, String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .and_then(|endpoint| endpoint.user_agent("kube-probe/1.36"))
        .map_err(|error| error.to_string())?;
    loop {
        match endpoint.connect().await {
            Ok(channel) => return Ok(channel),
            Err(error) => tracing::trace!(%error, address, "a gRPC probe does not connect"),
        }
        tokio::time::sleep(AGAIN).await;
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
    let path = PathAndQuery::from_static(CHECK);
    let answer = client.unary(request, path, codec).await?;
    Ok(answer.into_inner())
}

fn judge(answer: Result<HealthCheckResponse, Status>, timeout: Duration) -> Result<(), String> {
    match answer {
        Ok(answer) if answer.status() == Health::Serving => Ok(()),
        Ok(answer) => {
            let status = answer.status().name();
            Err(format!("service unhealthy (responded with {status:?})"))
        }
        Err(status) => Err(match status.code() {
            Code::Unimplemented => format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                status.message()
            ),
            Code::DeadlineExceeded | Code::Cancelled => {
                let within = within(timeout);
                format!("timeout: health rpc did not complete within {within}")
            }
            code => format!(
                "error: health rpc probe failed: rpc error: code = {code:?} desc = {}",
                status.message()
            ),
        }),
    }
}

/// A time as upstream writes it.
fn within(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
