//! `/configz`: the settings of the agent as a `KubeletConfiguration`. Only fields that the agent honours.

use std::time::Duration;

use kennel_core::duration::GoString;
use kennel_core::pod::eviction::Threshold;
use kennel_core::quantity::{Format, Quantity};
use serde_json::{Map, Value, json};

use super::auth;
use super::container_logs::{FILES_MAX, LOG_BYTES_MAX};
use crate::agent::{Settings, intervals};
use crate::pressure;

pub(super) fn document(settings: &Settings) -> Value {
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": settings.listen.ip(),
        "port": settings.listen.port(),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true, "cacheTTL": duration(auth::POSITIVE_TTL)},
        },
        "authorization": {"mode": "Webhook", "webhook": {
            "cacheAuthorizedTTL": duration(auth::POSITIVE_TTL),
            "cacheUnauthorizedTTL": duration(auth::NEGATIVE_TTL),
        }},
        "registerNode": true,
        "rotateCertificates": true,
        "serverTLSBootstrap": true,
        "nodeStatusUpdateFrequency": duration(intervals::STATUS_CHECK),
        "nodeStatusReportFrequency": duration(intervals::STATUS_REPORT),
        "nodeLeaseDurationSeconds": intervals::LEASE_SECONDS,
        "maxPods": settings.max_pods,
        "clusterDomain": settings.cluster_domain,
        "clusterDNS": settings.cluster_dns,
        "podLogsDir": settings.paths.logs.join("pods"),
        "containerLogMaxSize": bytes(LOG_BYTES_MAX),
        "containerLogMaxFiles": FILES_MAX,
        "evictionHard": bounds(&settings.eviction_hard),
        "evictionPressureTransitionPeriod": duration(pressure::PRESSURE_TRANSITION_PERIOD),
    });
    if let Some(dir) = &settings.manifest_dir {
        config["staticPodPath"] = json!(dir);
    }
    if !settings.taints.is_empty() {
        config["registerWithTaints"] = json!(settings.taints);
    }
    if !settings.eviction_soft.is_empty() {
        let soft = &settings.eviction_soft;
        config["evictionSoft"] = bounds(soft).into();
        config["evictionSoftGracePeriod"] = grace_periods(soft).into();
        let grace = settings.eviction_max_pod_grace.as_secs();
        config["evictionMaxPodGracePeriod"] = grace.into();
    }
    json!({"kubeletconfig": config})
}

fn duration(duration: Duration) -> String {
    GoString(duration).to_string()
}

fn bytes(bytes: u64) -> String {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    Quantity::from_units(bytes, Format::BinarySi).to_string()
}

/// Each signal with its bound: `memory.available` with `100Mi`.
fn bounds(thresholds: &[Threshold]) -> Map<String, Value> {
    let bounds = thresholds.iter().filter_map(|threshold| {
        let statement = threshold.to_string();
        let (signal, bound) = statement.split_once('<')?;
        Some((signal.to_owned(), bound.into()))
    });
    bounds.collect()
}

fn grace_periods(thresholds: &[Threshold]) -> Map<String, Value> {
    let periods = thresholds.iter().filter_map(|threshold| {
        let period = duration(threshold.grace_period?);
        Some((threshold.signal.to_string(), period.into()))
    });
    periods.collect()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::path::Path;

    use super::*;
    use crate::pressure::thresholds;

    #[test]
    fn the_document_has_the_settings_in_use() {
        let address = IpAddr::from([10, 0, 0, 1]);
        let mut settings = Settings::defaults("n1", address, Path::new("/data"));
        settings.listen = ([0, 0, 0, 0], 10250).into();
        settings.cluster_dns = vec![IpAddr::from([10, 96, 0, 10])];
        settings.manifest_dir = Some("/etc/manifests".into());
        settings.eviction_hard = thresholds::defaults();
        let config = &document(&settings)["kubeletconfig"];
        for (field, expected) in [
            ("kind", json!("KubeletConfiguration")),
            ("address", json!("0.0.0.0")),
            ("port", json!(10250)),
            ("maxPods", json!(110)),
            ("clusterDNS", json!(["10.96.0.10"])),
            ("staticPodPath", json!("/etc/manifests")),
            ("podLogsDir", json!("/data/logs/pods")),
            ("containerLogMaxSize", json!("10Mi")),
            ("nodeStatusReportFrequency", json!("5m0s")),
            ("nodeLeaseDurationSeconds", json!(40)),
        ] {
            assert_eq!(config[field], expected, "{field}");
        }
        assert_eq!(config["evictionHard"]["memory.available"], "100Mi");
        assert_eq!(config["evictionHard"]["nodefs.available"], "10%");
        assert_eq!(config.get("evictionSoft"), None);
        assert_eq!(config["authentication"]["anonymous"]["enabled"], false);
    }
}
