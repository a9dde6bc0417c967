//! The addresses of the cluster's own Services that pods get: that of the API, and that of the DNS server.
//!
//! They are read when a pod starts, not watched: thousands of agents would each keep a watch open for what hardly ever changes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::api;
use kube::Client;
use kube::api::{GetParams, Request};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::agent::{ApiAddress, Settings};
use crate::json::{list, text};
use crate::pods::{Origin, Pod};

/// How long what was read is used again: many pods may start at once.
const FRESH: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// What pods are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Services {
    /// Name servers of pods with the DNS policy `ClusterFirst`.
    pub(super) dns: Vec<IpAddr>,
    pub(super) api: Option<ApiAddress>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ServicesError {
    #[error("cannot read the {what} {namespace}/{name}: {}", api::explain(.source))]
    Read {
        what: &'static str,
        namespace: &'static str,
        name: &'static str,
        source: Box<kube::Error>,
    },
    #[error("timed out reading the addresses of the cluster's services")]
    Timeout,
}

/// See the [module](self).
pub(super) struct ClusterServices {
    client: Client,
    settings: Arc<Settings>,
    last: Mutex<Option<(Instant, Services)>>,
}

impl ClusterServices {
    pub(super) fn new(client: Client, settings: Arc<Settings>) -> Self {
        Self {
            client,
            settings,
            last: Mutex::default(),
        }
    }

    /// What this pod is told. While the API server is away, it is what was read last; a static pod does not wait for it.
    pub(super) async fn of(&self, pod: &Pod) -> Result<Services, ServicesError> {
        if !self.settings.service_proxy || self.settings.api.is_none() {
            return Ok(self.of_settings());
        }
        let mut last = self.last.lock().await;
        if let Some((read, services)) = &*last
            && read.elapsed() < FRESH
        {
            return Ok(services.clone());
        }
        let reading = tokio::time::timeout(READ_TIMEOUT, self.read()).await;
        match (reading.unwrap_or(Err(ServicesError::Timeout)), &*last) {
            (Ok(services), _) => {
                *last = Some((Instant::now(), services.clone()));
                Ok(services)
            }
            (Err(error), Some((_, services))) => {
                tracing::debug!("using older addresses of services: {error}");
                Ok(services.clone())
            }
            (Err(_), None) if pod.origin == Origin::File => Ok(self.of_settings()),
            (Err(error), None) => Err(error),
        }
    }

    /// Without a proxy, pods reach the API server's own address, and the name servers of the flag.
    fn of_settings(&self) -> Services {
        Services {
            dns: self.settings.cluster_dns.clone(),
            api: self.settings.api.clone(),
        }
    }

    async fn read(&self) -> Result<Services, ServicesError> {
        let mut services = self.of_settings();
        if services.dns.is_empty() {
            let service = self.get("services", "kube-system", "kube-dns").await?;
            services.dns = cluster_ips(&service);
        }
        let endpoints = self.get("endpoints", "default", "kubernetes").await?;
        // An API server on the loopback interface alone has no endpoint, and only its own address works.
        let mut subsets = list(&endpoints, "subsets").iter();
        let has_endpoints = subsets.any(|subset| subset["addresses"].is_array());
        if has_endpoints {
            let service = self.get("services", "default", "kubernetes").await?;
            let port = service["spec"]["ports"][0]["port"].as_u64();
            let port = port.and_then(|port| port.try_into().ok());
            if let (Some(ip), Some(port)) = (cluster_ips(&service).first(), port) {
                services.api = Some(ApiAddress {
                    host: ip.to_string(),
                    port,
                });
            }
        }
        Ok(services)
    }

    /// Null if it does not exist, or the node may not read it.
    async fn get(
        &self,
        what: &'static str,
        namespace: &'static str,
        name: &'static str,
    ) -> Result<Value, ServicesError> {
        let failed = |source| ServicesError::Read {
            what,
            namespace,
            name,
            source: Box::new(source),
        };
        let request = Request::new(api::core_path(namespace, what));
        let request = request.get(name, &GetParams::default());
        let request = request.map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        match self.client.request(request).await {
            Err(error) if matches!(api::code(&error), Some(403 | 404)) => Ok(Value::Null),
            other => other.map_err(failed),
        }
    }
}

/// None if it is headless or does not exist.
fn cluster_ips(service: &Value) -> Vec<IpAddr> {
    let spec = &service["spec"];
    let listed = list(spec, "clusterIPs").iter().filter_map(Value::as_str);
    let mut all: Vec<IpAddr> = listed.filter_map(|ip| ip.parse().ok()).collect();
    if all.is_empty() {
        all.extend(text(spec, "clusterIP").parse::<IpAddr>().ok());
    }
    all
}
