//! Resource usage of containers.

use super::connection::Connection;
use super::{api, labels};
use crate::runtime::{Result, Usage};

/// The usage of all our running containers.
pub(super) async fn usage(connection: &Connection) -> Result<Vec<Usage>> {
    let filter = api::ContainerStatsFilter {
        label_selector: labels::selector(None),
    };
    let request = api::ListContainerStatsRequest {
        filter: Some(filter),
    };
    let response = connection.call(request).await?;
    Ok(response.stats.into_iter().filter_map(parse).collect())
}

fn parse(stats: api::ContainerStats) -> Option<Usage> {
    let labels = stats.attributes?.labels;
    let value = |value: Option<api::UInt64Value>| value.map_or(0, |value| value.value);
    // Missing for a container that has just exited.
    let memory = stats.memory?.working_set_bytes;
    let cpu = stats.cpu.and_then(|cpu| cpu.usage_core_nano_seconds);
    let disk = stats.writable_layer.and_then(|layer| layer.used_bytes);
    Some(Usage {
        pod: labels::get(&labels, labels::POD_UID),
        container: labels::get(&labels, labels::CONTAINER_NAME),
        memory: value(memory),
        cpu: value(cpu),
        disk: value(disk),
    })
}
