//! Asks containers how they are, and runs the hooks of their life.
//!
//! ```text
//!   ask ──▶ exec · web ─▶ tls · tcp · grpc        one question, one answer, within its time
//!   hook ─▶ exec · web · sleep
//! ```
//!
//! When to ask and what the answers mean is decided elsewhere ([`kennel_core::pod::probe`]). Nothing here
//! remembers anything, keeps a connection or tries a second time.

mod dial;
mod exec;
mod grpc;
mod hook;
mod redirect;
#[cfg(test)]
mod tests;
mod tls;
mod web;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kennel_core::pod::Container;
use serde_json::Value;

use crate::pods::needs::{Probes, Question, Unwell};
use crate::runtime::{PodId, Runtime};

/// Asks the containers of a runtime.
#[derive(Clone)]
pub struct Prober(Arc<dyn Runtime>);

impl Prober {
    /// Asks what this runtime runs.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self(runtime)
    }
}

#[async_trait]
impl Probes for Prober {
    async fn ask(&self, question: &Question<'_>) -> Result<(), Unwell> {
        ask(&Target::new(&*self.0, question), question.what).await
    }

    async fn hook(&self, question: &Question<'_>) -> Result<(), String> {
        hook::hook(&Target::new(&*self.0, question), question.what).await
    }
}

/// A container that runs.
#[derive(Clone, Copy)]
struct Target<'a> {
    runtime: &'a dyn Runtime,
    pod: &'a PodId,
    container: &'a Container,
    /// What the runtime calls this run of it.
    id: &'a str,
    /// Where to reach it.
    address: Option<IpAddr>,
}

/// `probe` is the probe of a spec, whole.
async fn ask(target: &Target<'_>, probe: &Value) -> Result<(), Unwell> {
    let timeout = timeout(probe);
    if probe["exec"].is_object() {
        exec::ask(target, &probe["exec"], timeout).await
    } else if probe["httpGet"].is_object() {
        web::ask(target, &probe["httpGet"], timeout).await
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

impl<'a> Target<'a> {
    fn new(runtime: &'a dyn Runtime, question: &Question<'a>) -> Self {
        Self {
            runtime,
            pod: &question.pod.id,
            container: question.container,
            id: question.id,
            address: question.address,
        }
    }

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
                let address = self.address.map(|address| address.to_string());
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
