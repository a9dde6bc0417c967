//! The printers that registry rows name: which columns a resource has, and how an object becomes cells.

use kennel_types::Timestamp;
use serde_json::Value;

use super::{Column, event, network, node, pod, security, small, storage, workload};

/// How the objects of one resource print.
pub(crate) struct Printer {
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// The conditions of an object's table row: finished pods are `Completed`.
    pub(super) conditions: fn(&Value) -> Option<Value>,
}

const fn printer(
    columns: &'static [Column],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
) -> Printer {
    Printer {
        columns,
        cells,
        conditions: |_| None,
    }
}

pub(crate) static CONFIG_MAP: Printer = printer(small::CONFIG_MAP, small::config_map);
pub(crate) static CONTROLLER_REVISION: Printer =
    printer(workload::CONTROLLER_REVISION, workload::controller_revision);
pub(crate) static CORE_EVENT: Printer = printer(event::COLUMNS, event::core);
pub(crate) static CSI_DRIVER: Printer = printer(storage::CSI_DRIVER, storage::csi_driver);
pub(crate) static CSI_NODE: Printer = printer(storage::CSI_NODE, storage::csi_node);
pub(crate) static DAEMON_SET: Printer = printer(workload::DAEMONSET, workload::daemonset);
pub(crate) static DISRUPTION_BUDGET: Printer =
    printer(workload::DISRUPTION_BUDGET, workload::disruption_budget);
pub(crate) static ENDPOINTS: Printer = printer(network::ENDPOINTS, network::endpoints);
pub(crate) static ENDPOINT_SLICE: Printer =
    printer(network::ENDPOINT_SLICE, network::endpoint_slice);
pub(crate) static EVENT: Printer = printer(event::COLUMNS, event::events);
pub(crate) static IP_ADDRESS: Printer = printer(network::IP_ADDRESS, network::ip_address);
pub(crate) static LEASE: Printer = printer(small::LEASE, small::lease);
pub(crate) static LIMIT_RANGE: Printer = printer(security::ROLE, security::role);
pub(crate) static NAMESPACE: Printer = printer(small::NAMESPACE, small::namespace);
pub(crate) static NETWORK_POLICY: Printer =
    printer(network::NETWORK_POLICY, network::network_policy);
pub(crate) static NODE: Printer = printer(node::COLUMNS, node::cells);
pub(crate) static PERSISTENT_VOLUME: Printer = printer(storage::VOLUME, storage::volume);
pub(crate) static PERSISTENT_VOLUME_CLAIM: Printer = printer(storage::CLAIM, storage::claim);
pub(crate) static POD: Printer = Printer {
    conditions: pod::conditions,
    ..printer(pod::COLUMNS, pod::cells)
};
pub(crate) static PRIORITY_CLASS: Printer = printer(small::PRIORITY_CLASS, small::priority_class);
pub(crate) static RESOURCE_QUOTA: Printer = printer(small::RESOURCE_QUOTA, small::resource_quota);
/// Name and time of creation: also for a resource without columns of its own.
pub(crate) static ROLE: Printer = printer(security::ROLE, security::role);
pub(crate) static ROLE_BINDING: Printer = printer(security::BINDING, security::binding);
pub(crate) static RUNTIME_CLASS: Printer = printer(small::RUNTIME_CLASS, small::runtime_class);
pub(crate) static SECRET: Printer = printer(small::SECRET, small::secret);
pub(crate) static SERVICE: Printer = printer(network::SERVICE, network::service);
pub(crate) static SERVICE_ACCOUNT: Printer =
    printer(small::SERVICE_ACCOUNT, small::service_account);
pub(crate) static SERVICE_CIDR: Printer = printer(network::SERVICE_CIDR, network::service_cidr);
pub(crate) static SIGNING_REQUEST: Printer =
    printer(security::SIGNING_REQUEST, security::signing_request);
pub(crate) static STORAGE_CLASS: Printer = printer(storage::STORAGE_CLASS, storage::storage_class);
