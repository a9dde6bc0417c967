//! `ServiceCIDR` and `IPAddress`: the range of cluster IPs that the server was started with, and the addresses of it that
//! services have.

use serde_json::{Value, json};

use super::Projection;
use crate::kinds::service::Cidr;
use crate::registry::{self, Resource};
use crate::tree::{text, texts};

/// The name of the one range, as upstream.
const DEFAULT_CIDR: &str = "kubernetes";
/// The namespace that is as old as the cluster and cannot be deleted.
const OLDEST_NAMESPACE: &str = "default";

/// The one range, which is as old as the cluster.
pub(crate) struct ServiceCidrs;

impl Projection for ServiceCidrs {
    fn source(&self) -> &'static Resource {
        registry::core("namespaces")
    }

    fn object(&self, namespace: &Value, cidr: &Cidr) -> Option<Value> {
        let created = &namespace["metadata"]["creationTimestamp"];
        let is_default = text(namespace, "metadata.name") == OLDEST_NAMESPACE;
        is_default.then(|| {
            json!({
                "metadata": {"name": DEFAULT_CIDR, "creationTimestamp": created},
                "spec": {"cidrs": [cidr.0.to_string()]},
                "status": {"conditions": [{
                    "type": "Ready", "status": "True", "reason": "",
                    "message": "Kubernetes default Service CIDR is ready",
                    "lastTransitionTime": created,
                }]},
            })
        })
    }

    fn origin(&self) -> &'static str {
        "the range of cluster IPs is set when the server starts, with --service-cidr"
    }
}

/// The cluster IPs of services. Services have one address each, of the one range.
pub(crate) struct IpAddresses;

impl Projection for IpAddresses {
    fn source(&self) -> &'static Resource {
        registry::core("services")
    }

    fn object(&self, service: &Value, _: &Cidr) -> Option<Value> {
        let mut addresses =
            texts(service, "spec.clusterIPs").chain([text(service, "spec.clusterIP")]);
        let address = addresses.find_map(|ip| ip.parse::<std::net::IpAddr>().ok())?;
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        Some(json!({
            "metadata": {
                "name": address.to_string(),
                "creationTimestamp": service["metadata"]["creationTimestamp"],
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": family,
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                },
            },
            "spec": {"parentRef": {
                "resource": "services",
                "namespace": text(service, "metadata.namespace"),
                "name": text(service, "metadata.name"),
            }},
        }))
    }

    fn origin(&self) -> &'static str {
        "IP addresses come and go with the cluster IPs of services"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr() -> Cidr {
        "10.96.7.7/16".parse().unwrap()
    }

    #[test]
    fn a_service_with_a_cluster_ip_has_one_address() {
        let service = json!({
            "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]},
        });
        let address = IpAddresses.object(&service, &cidr()).unwrap();
        assert_eq!(address["metadata"]["name"], "10.96.0.9");
        let family = &address["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"];
        assert_eq!(family, "IPv4");
        let parent = &address["spec"]["parentRef"];
        assert_eq!(
            (&parent["namespace"], &parent["name"]),
            (&json!("shop"), &json!("web"))
        );
        for without in [json!({"clusterIP": "None"}), json!({"externalName": "db"})] {
            let service = json!({"metadata": {"name": "x"}, "spec": without});
            assert_eq!(IpAddresses.object(&service, &cidr()), None);
        }
    }

    #[test]
    fn the_range_is_that_of_the_server_whatever_other_namespaces_there_are() {
        let namespace = |name: &str| json!({"metadata": {"name": name}});
        let range = ServiceCidrs.object(&namespace("default"), &cidr()).unwrap();
        assert_eq!(range["metadata"]["name"], "kubernetes");
        assert_eq!(range["spec"]["cidrs"], json!(["10.96.0.0/16"]));
        assert_eq!(ServiceCidrs.object(&namespace("other"), &cidr()), None);
    }
}
