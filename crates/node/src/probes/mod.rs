//! Runs probes and lifecycle hooks against containers.
//!
//! ```text
//!   probe ──▶ exec · http_get · tcp · grpc
//!   hook ───▶ exec · http_get · sleep
//! ```
//!
//! [`kennel_core::pod::probe`] decides when a probe runs and what its results mean. This module keeps no state and no
//! connections, and retries nothing.

mod dial;
mod error;
mod exec;
mod grpc;
mod hook;
mod http_get;
mod redirect;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kennel_types::Container;
use serde_json::Value;

use crate::pods::traits::{HookError, ProbeError, ProbeRequest, ProbeRunner};
use crate::runtime::{PodId, Runtime};
use error::{TargetError, message};

#[derive(Clone)]
pub struct Prober(Arc<dyn Runtime>);

impl Prober {
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self(runtime)
    }
}

#[async_trait]
impl ProbeRunner for Prober {
    async fn probe(&self, request: &ProbeRequest) -> Result<(), ProbeError> {
        probe(&Target::new(&*self.0, request), &request.handler).await
    }

    async fn run_hook(&self, request: &ProbeRequest) -> Result<(), HookError> {
        hook::run(&Target::new(&*self.0, request), &request.handler).await
    }
}

/// The container that a probe or hook runs against.
#[derive(Clone, Copy)]
struct Target<'a> {
    runtime: &'a dyn Runtime,
    pod: &'a PodId,
    container: &'a Container,
    /// The container's id in the runtime.
    id: &'a str,
    address: Option<IpAddr>,
}

/// `probe` is the whole probe of the container's spec.
async fn probe(target: &Target<'_>, probe: &Value) -> Result<(), ProbeError> {
    let timeout = timeout(probe);
    if probe["exec"].is_object() {
        exec::probe(target, &probe["exec"], timeout).await
    } else if probe["httpGet"].is_object() {
        http_get::probe(target, &probe["httpGet"], timeout).await
    } else if probe["tcpSocket"].is_object() {
        tcp(target, &probe["tcpSocket"], timeout).await
    } else if probe["grpc"].is_object() {
        grpc::probe(target, &probe["grpc"], timeout).await
    } else {
        let why = format!("missing probe handler for {}", target.name());
        Err(ProbeError::Unknown(why))
    }
}

fn timeout(probe: &Value) -> Duration {
    let seconds = probe["timeoutSeconds"].as_u64().unwrap_or(1);
    Duration::from_secs(seconds.max(1))
}

async fn tcp(target: &Target<'_>, action: &Value, timeout: Duration) -> Result<(), ProbeError> {
    let host = target.host(action)?;
    let port = target.port(&action["port"])?;
    let connected = dial::connect_within(&host, port, timeout).await;
    connected
        .map(drop)
        .map_err(|error| ProbeError::Failed(message(&error)))
}

impl<'a> Target<'a> {
    fn new(runtime: &'a dyn Runtime, request: &'a ProbeRequest) -> Self {
        Self {
            runtime,
            pod: &request.pod.id,
            container: &request.container,
            id: &request.id,
            address: request.address,
        }
    }

    /// The container, as upstream's messages name it.
    fn name(&self) -> String {
        let PodId {
            namespace, name, ..
        } = self.pod;
        format!("{namespace}/{name}:{}", self.container.name)
    }

    /// The action's host; the pod's address by default.
    fn host(&self, action: &Value) -> Result<String, TargetError> {
        match action["host"].as_str() {
            Some(host) if !host.is_empty() => Ok(host.to_owned()),
            _ => {
                let address = self.address.map(|address| address.to_string());
                address.ok_or(TargetError::NoAddress)
            }
        }
    }

    /// The number of a port that is given by number or name.
    fn port(&self, port: &Value) -> Result<u16, TargetError> {
        let found = self.container.resolve_port(port).filter(|port| *port > 0);
        found.ok_or_else(|| match port {
            Value::String(name) if name.parse::<i64>().is_err() => {
                TargetError::PortName(name.clone())
            }
            Value::String(number) => TargetError::PortNumber(number.clone()),
            other => TargetError::PortNumber(other.to_string()),
        })
    }
}
