//! Messages about the runtime itself and container statistics.

use std::collections::BTreeMap;

use super::{FilesystemUsage, UInt64Value};

messages! {
    VersionRequest {}

    VersionResponse {
        2 => runtime_name: String as string,
        3 => runtime_version: String as string,
    }

    #[derive(Copy)]
    StatusRequest {
        1 => verbose: bool as bool,
    }

    StatusResponse {
        1 => status: Option<RuntimeStatus> as message optional,
        2 => info: BTreeMap<String, String> as btree_map = "string, string",
    }

    RuntimeStatus {
        1 => conditions: Vec<RuntimeCondition> as message repeated,
    }

    RuntimeCondition {
        1 => r#type: String as string,
        2 => status: bool as bool,
        3 => reason: String as string,
        4 => message: String as string,
    }

    ContainerStatsFilter {
        3 => label_selector: BTreeMap<String, String> as btree_map = "string, string",
    }

    ListContainerStatsRequest {
        1 => filter: Option<ContainerStatsFilter> as message optional,
    }

    ListContainerStatsResponse {
        1 => stats: Vec<ContainerStats> as message repeated,
    }

    ContainerStats {
        1 => attributes: Option<ContainerAttributes> as message optional,
        2 => cpu: Option<CpuUsage> as message optional,
        3 => memory: Option<MemoryUsage> as message optional,
        4 => writable_layer: Option<FilesystemUsage> as message optional,
    }

    ContainerAttributes {
        1 => id: String as string,
        3 => labels: BTreeMap<String, String> as btree_map = "string, string",
    }

    #[derive(Copy)]
    CpuUsage {
        2 => usage_core_nano_seconds: Option<UInt64Value> as message optional,
    }

    #[derive(Copy)]
    MemoryUsage {
        2 => working_set_bytes: Option<UInt64Value> as message optional,
    }
}
