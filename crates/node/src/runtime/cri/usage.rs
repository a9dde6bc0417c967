//! What containers use.

use super::line::Line;
use super::{api, labels};
use crate::runtime::{Result, Usage};

/// Of all containers of ours that run.
pub(super) async fn usage(line: &Line) -> Result<Vec<Usage>> {
    let filter = api::ContainerStatsFilter {
        label_selector: labels::selector(None),
    };
    let request = api::ListContainerStatsRequest {
        filter: Some(filter),
    };
    let answer = line.ask(request).await?;
    Ok(answer.stats.into_iter().filter_map(read).collect())
}

fn read(stats: api::ContainerStats) -> Option<Usage> {
    let labels = stats.attributes?.labels;
    let value = |value: Option<api::UInt64Value>| value.map_or(0, |value| value.value);
    // One that has just ended has none.
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
