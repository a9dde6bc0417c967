//! The machine's capacity, used while the Node object does not have it.

use serde_json::{Value, json};

use crate::agent::machine;

/// In the format of a node's status.
pub(super) fn resources() -> Value {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    json!({"cpu": cpus.to_string(), "memory": machine::total_memory().to_string()})
}
