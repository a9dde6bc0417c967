//! Asks containers how they are, and runs the hooks of their life.
//!
//! ```text
//!   ask ──▶ exec · http ─▶ tls · tcp · grpc        one question, one answer, within its time
//!   hook ─▶ exec · http · sleep
//! ```
//!
//! When to ask and what the answers mean is decided elsewhere ([`kennel_core::pod::probe`]). Nothing here
//! remembers anything, keeps a connection or tries a second time.

mod dial;
mod exec;
mod grpc;
mod hook;
mod http;
mod redirect;
#[cfg(test)]
mod tests;
mod tls;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use kennel_core::pod::Container;
use serde_json::Value;

use crate::runtime::{PodId, Runtime};

pub use self::hook::hook;

/// A container that runs.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// What runs it.
    pub runtime: &'a dyn Runtime,
    /// Its pod.
    pub pod: &'a PodId,
    /// What it is to be; probes may name its ports.
    pub container: &'a Container,
    /// What the runtime calls this run of it.
    pub container_id: &'a str,
    /// Its pod's own address; none if it has the machine's network.
    pub pod_ip: Option<IpAddr>,
    /// The machine's address.
    pub host_ip: Option<IpAddr>,
}

/// Why a probe did not pass, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwell {
    /// The container has failed it.
    Failed(String),
    /// It could not be asked, so nothing is known: this answer must count neither way.
    Unknown(String),
}

impl fmt::Display for Unwell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(why) | Self::Unknown(why)) = self;
        f.write_str(why)
    }
}

/// Asks a container how it is: `probe` is the probe of its spec, whole.
pub async fn ask(target: &Target<'_>, probe: &Value) -> Result<(), Unwell> {
    let timeout = timeout(probe);
    if probe["exec"].is_object() {
        exec::ask(target, &probe["exec"], timeout).await
    } else if probe["httpGet"].is_object() {
        http::ask(target, &probe["httpGet"], timeout).await
    } else if probe["tcpSocket"].is_object() {
        tcp(target, &probe["tcpSocket"], timeout).await
    } else if probe["grpc"].is_object() {
        grpc::ask(target, &probe["grpc"], timeout).await
    } else {
        let why = format!("missing probe handler for {}", target.name());
        Err(Unwell::Unknown(why))
    }
}

fn timeout(probe: &Value) -> Duration {
    let seconds = probe["timeoutSeconds"].as_u64().unwrap_or(1);
    Duration::from_secs(seconds.max(1))
}

async fn tcp(target: &Target<'_>, action: &Value, timeout: Duration) -> Result<(), Unwell> {
    let host = target.host(action).map_err(Unwell::Unknown)?;
    let port = target.port(&action["port"]).map_err(Unwell::Unknown)?;
    let connected = dial::dial(&host, port, timeout).await;
    connected.map(drop).map_err(Unwell::Failed)
}

impl Target<'_> {
    /// The container, as upstream's messages name it.
    fn name(&self) -> String {
        let PodId {
            namespace, name, ..
        } = self.pod;
        format!("{namespace}/{name}:{}", self.container.name)
    }

    /// Where to ask: where the action says, else the pod.
    fn host(&self, action: &Value) -> Result<String, String> {
        match action["host"].as_str() {
            Some(host) if !host.is_empty() => Ok(host.to_owned()),
            _ => {
                let address = self.pod_ip.or(self.host_ip);
                let address = address.map(|address| address.to_string());
                address.ok_or_else(|| "the pod has no address".to_owned())
            }
        }
    }

    /// The number of a port that is given by number or name.
    fn port(&self, port: &Value) -> Result<u16, String> {
        let found = self.container.port(port).filter(|port| *port > 0);
        found.ok_or_else(|| match port {
            Value::String(name) if name.parse::<i64>().is_err() => {
                format!("strconv.Atoi: parsing {name:?}: invalid syntax")
            }
            Value::String(number) => format!("invalid port number: {number}"),
            other => format!("invalid port number: {other}"),
        })
    }
}
