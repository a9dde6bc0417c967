//! Nodes and objects as the rules read them.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::ConfigMap;
use kennel_core::node_ipam;
use kennel_core::pod_network::object::{self, Stored};
use kennel_core::pod_network::{
    DIRECT_ANNOTATION, LINK_ANNOTATION, MODE_ANNOTATION, asks_for_range,
};
use kennel_types::Node;
use kennel_types::node::NodeAddressType;

fn annotation<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let annotations = node.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

pub(super) fn ipam(node: &Node) -> node_ipam::NodeFacts {
    let ranges = &node.spec.pod_cidrs;
    node_ipam::NodeFacts {
        name: node.metadata.name.as_deref().unwrap_or_default().into(),
        uid: node.metadata.uid.as_deref().unwrap_or_default().into(),
        asks: annotation(node, MODE_ANNOTATION).is_some_and(asks_for_range),
        has_ranges: !ranges.is_empty(),
        ranges: ranges
            .iter()
            .filter_map(|range| range.parse().ok())
            .collect(),
    }
}

pub(super) fn network(node: &Node) -> object::NodeFacts {
    let owned = |key: &str| annotation(node, key).map(str::to_owned);
    let internal = node
        .status
        .addresses
        .iter()
        .filter(|one| one.r#type == NodeAddressType::InternalIp);
    object::NodeFacts {
        name: node.metadata.name.as_deref().unwrap_or_default().into(),
        uid: node.metadata.uid.as_deref().unwrap_or_default().into(),
        mode: owned(MODE_ANNOTATION),
        link: owned(LINK_ANNOTATION),
        direct: owned(DIRECT_ANNOTATION),
        addresses: internal
            .filter_map(|one| one.address.parse::<Ipv4Addr>().ok())
            .collect(),
        range: node
            .spec
            .pod_cidrs
            .iter()
            .find_map(|range| range.parse().ok()),
    }
}

pub(super) fn stored(object: &ConfigMap) -> Stored {
    let meta = &object.metadata;
    let owners = meta.owner_references.iter().flatten();
    Stored {
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        owners: owners.map(|owner| owner.uid.clone()).collect(),
        data: object.data.clone().unwrap_or_default(),
    }
}
