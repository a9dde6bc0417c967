//! The rules of Kennel as pure functions: what should be, given what is.
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
//!   a pod, and what runs of it · time passes ─▶ pod ─▶ start, stop, its status
//!
//!   certificate request ─▶ certificates ─▶ approve, sign, refuse
//!
//!   numbers ─▶ metric ─▶ the text of /metrics
//!
//!   everything about one DaemonSet, at one moment ─▶ why ─▶ what is wrong where, and what would help
//! ```
//!
//! Nothing here performs I/O, reads a clock, draws random numbers or awaits: the rooms around this
//! one do, and hand in what they saw.

pub mod affinity;
pub mod backoff;
pub mod certificates;
pub mod daemonset;
pub mod duration;
pub mod endpoints;
pub mod garbage;
pub mod int_or_percent;
pub mod lifecycle;
pub mod metric;
pub mod names;
pub mod pod;
pub mod procfs;
pub mod quantity;
pub mod schedule;
pub mod selector;
pub mod spread;
pub mod taint;
pub mod why;
