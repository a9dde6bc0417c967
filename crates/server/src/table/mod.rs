//! Tables: what `kubectl get` prints, and the metadata-only forms.
//!
//! One printer per resource says which columns there are and how an object becomes cells. All
//! cells are always made, wide ones too; the client leaves out what it was not asked for. This room
//! reads trees and a given time, nothing else, and never fails on an odd object.

mod column;
mod duration;
mod empty;
mod event;
mod format;
mod metadata;
mod network;
mod node;
mod pod;
mod read;
mod render;
mod security;
mod small;
mod storage;
mod workload;

#[cfg(test)]
mod testing;

use jiff::Timestamp;
use serde_json::Value;

use crate::registry::Resource;

pub use column::Column;
pub use duration::human_duration;
pub use metadata::{
    KIND, LIST_KIND, partial_metadata, partial_metadata_list, put_partial_metadata,
};
pub use render::{Header, IncludeObject, render, render_empty, render_event};

/// How the objects of one resource print.
struct Printer {
    group: &'static str,
    plural: &'static str,
    columns: &'static [Column],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
}

const fn printer(
    group: &'static str,
    plural: &'static str,
    columns: &'static [Column],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
) -> Printer {
    Printer {
        group,
        plural,
        columns,
        cells,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

static PRINTERS: &[Printer] = &[
    printer("", "namespaces", small::NAMESPACE, small::namespace),
    printer("", "nodes", node::COLUMNS, node::cells),
    printer("", "pods", pod::COLUMNS, pod::cells),
    printer("", "configmaps", small::CONFIG_MAP, small::config_map),
    printer("", "secrets", small::SECRET, small::secret),
    printer("", "services", network::SERVICE, network::service),
    printer("", "endpoints", network::ENDPOINTS, network::endpoints),
    printer("", "events", event::COLUMNS, event::core),
    printer(
        "",
        "serviceaccounts",
        small::SERVICE_ACCOUNT,
        small::service_account,
    ),
    printer("", "persistentvolumes", storage::VOLUME, storage::volume),
    printer("", "persistentvolumeclaims", storage::CLAIM, storage::claim),
    printer(
        "apps",
        "daemonsets",
        workload::DAEMONSET,
        workload::daemonset,
    ),
    printer(
        "apps",
        "controllerrevisions",
        workload::CONTROLLER_REVISION,
        workload::controller_revision,
    ),
    printer(
        "discovery.k8s.io",
        "endpointslices",
        network::ENDPOINT_SLICE,
        network::endpoint_slice,
    ),
    printer("coordination.k8s.io", "leases", small::LEASE, small::lease),
    printer("events.k8s.io", "events", event::COLUMNS, event::events),
    printer(
        "scheduling.k8s.io",
        "priorityclasses",
        small::PRIORITY_CLASS,
        small::priority_class,
    ),
    printer(RBAC, "roles", security::ROLE, security::role),
    printer(RBAC, "rolebindings", security::BINDING, security::binding),
    printer(RBAC, "clusterroles", security::ROLE, security::role),
    printer(
        RBAC,
        "clusterrolebindings",
        security::BINDING,
        security::binding,
    ),
    printer(
        "node.k8s.io",
        "runtimeclasses",
        small::RUNTIME_CLASS,
        small::runtime_class,
    ),
    printer(
        "storage.k8s.io",
        "csinodes",
        storage::CSI_NODE,
        storage::csi_node,
    ),
    printer(
        "storage.k8s.io",
        "csidrivers",
        storage::CSI_DRIVER,
        storage::csi_driver,
    ),
    printer(
        "certificates.k8s.io",
        "certificatesigningrequests",
        security::SIGNING_REQUEST,
        security::signing_request,
    ),
];

/// What a resource without a printer of its own shows: name and time of creation.
static GENERIC: Printer = printer("", "", security::ROLE, security::role);

fn printer_of(row: &Resource) -> &'static Printer {
    PRINTERS
        .iter()
        .find(|p| p.plural == row.plural && p.group == row.group)
        .unwrap_or(&GENERIC)
}

/// The columns of a resource, normal and wide.
pub fn columns(row: &Resource) -> &'static [Column] {
    printer_of(row).columns
}

/// One object as cells, one for each of the resource's [`columns`].
pub fn cells(row: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    (printer_of(row).cells)(object, now)
}

/// The conditions of an object's row, if it has any: finished pods are `Completed`.
pub fn row_conditions(row: &Resource, object: &Value) -> Option<Value> {
    if row.group.is_empty() && row.kind == "Pod" {
        return pod::conditions(object);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RESOURCES;

    #[test]
    fn every_resource_has_a_printer_and_a_cell_per_column() {
        for row in RESOURCES {
            let printer = printer_of(row);
            assert_eq!((printer.group, printer.plural), (row.group, row.plural));
            let cells = cells(row, &Value::Null, Timestamp::UNIX_EPOCH);
            assert_eq!(cells.len(), columns(row).len(), "{}", row.qualified());
        }
    }

    #[test]
    fn exactly_one_column_holds_the_name() {
        for row in RESOURCES {
            let names = columns(row).iter().filter(|c| c.format == "name").count();
            assert_eq!(names, 1, "{}", row.qualified());
        }
    }
}
