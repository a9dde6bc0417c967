//! The rules of Kennel as pure functions.
//!
//! ```text
//!   query strings, LabelSelectors ─▶ selector      taints, tolerations ─▶ taint
//!   node selector terms           ─▶ affinity      "25%", 3            ─▶ int_or_percent
//!
//!   DaemonSet, node, pod, revision changed or gone ─▶ daemonset::planner ─▶ create, delete, adopt, …
//!
//!   pending pod, node changed ─▶ schedule ─▶ bind
//!
//!   object changed or gone ─▶ garbage ─▶ delete, orphan, …
//!
//!   node, lease, pod changed · time passes ─▶ lifecycle ─▶ conditions, taints, evictions
//!
//!   pod, runtime state · time passes ─▶ pod ─▶ start, kill, status
//!
//!   pod, labels of its namespace ─▶ pod_security ─▶ what it violates
//!
//!   object, quotas, what they count ─▶ quota ─▶ fits, or why not
//!
//!   pods, a disruption budget ─▶ disruption ─▶ how many may be evicted
//!
//!   service, endpoint slice changed or gone ─▶ services ─▶ routes
//!
//!   certificate request ─▶ certificates ─▶ approve, sign, deny
//!
//!   live object, applied configuration ─▶ managed_fields ─▶ merged object, owners, conflicts
//!
//!   metrics ─▶ metric ─▶ the text of /metrics
//!
//!   snapshot of one DaemonSet ─▶ why ─▶ causes and remedies per node
//!   DaemonSet, node, pod, revision changed or gone ─▶ picture ─▶ the state of each node, for people
//! ```
//!
//! No I/O, no clock, no random numbers, no threads and no async: callers pass observations, times and random
//! numbers in. `clippy.toml` forbids the standard library functions that would break this.

pub mod affinity;
pub mod backoff;
pub mod certificates;
pub mod cidr;
pub mod daemonset;
pub mod disruption;
pub mod duration;
pub mod endpoints;
pub mod garbage;
pub mod go;
pub mod health;
mod ids;
pub mod int_or_percent;
pub mod lifecycle;
pub mod limit_range;
pub mod managed_fields;
pub mod metric;
pub mod names;
pub mod natural;
pub mod network;
pub mod node_ipam;
pub mod picture;
pub mod pod;
pub mod pod_network;
pub mod pod_security;
pub mod procfs;
pub mod quantity;
pub mod quota;
pub mod rollout;
pub mod schedule;
pub mod selector;
pub mod services;
pub mod spread;
pub mod statuses;
pub mod taint;
pub mod tree;
pub mod why;
