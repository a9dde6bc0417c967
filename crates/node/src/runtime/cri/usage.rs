//! Resource usage of containers.

use std::collections::HashMap;

use super::cgroups::{self, Driver};
use super::connection::Connection;
use super::{api, inventory, labels};
use crate::runtime::{Result, Usage};

/// The usage of all our running containers.
pub(super) async fn usage(connection: &Connection, driver: Driver) -> Result<Vec<Usage>> {
    let filter = api::ContainerStatsFilter {
        label_selector: labels::selector(None),
    };
    let request = api::ListContainerStatsRequest {
        filter: Some(filter),
    };
    let (response, sandboxes) = tokio::try_join!(
        connection.call(request),
        inventory::list_sandboxes(connection, None)
    )?;
    let groups: HashMap<&str, &str> = sandboxes
        .iter()
        .filter_map(|sandbox| {
            let group = sandbox.annotations.get(labels::CGROUP)?;
            let known = (inventory::uid(sandbox), group.as_str());
            (!group.is_empty()).then_some(known)
        })
        .collect();
    let parse = |stats| parse(stats, driver, &groups);
    Ok(response.stats.into_iter().filter_map(parse).collect())
}

/// `groups` are the cgroups of pods, by uid.
fn parse(
    stats: api::ContainerStats,
    driver: Driver,
    groups: &HashMap<&str, &str>,
) -> Option<Usage> {
    let attributes = stats.attributes?;
    let labels = attributes.labels;
    let pod = labels::get(&labels, labels::POD_UID);
    // Missing for a container that has just exited.
    let memory = stats.memory?.working_set_bytes?;
    let cpu = stats.cpu?.usage_core_nano_seconds?;
    let disk = stats.writable_layer.and_then(|layer| layer.used_bytes);
    let group = groups.get(pod.as_str());
    let group = group.map(|group| cgroups::of_container(driver, group, &attributes.id));
    Some(Usage {
        pod,
        container: labels::get(&labels, labels::CONTAINER_NAME),
        id: attributes.id,
        cgroup: group.unwrap_or_default(),
        memory: memory.value,
        cpu: cpu.value,
        disk: disk.map(|bytes| bytes.value),
    })
}
