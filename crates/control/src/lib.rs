//! Controllers and the scheduler, against any Kubernetes API.
//!
//! ```text
//!   API ──watch──▶ informers ─▶ view ─▶ kennel_core (rules) ─▶ client::write ───▶ API
//!                                          ▲                        │
//!                                          └────── outcomes ◀───────┘
//! ```
//!
//! Every controller runs in the same [`frame`], which owns watches, initial sync, the work queue, retries and the stop. A
//! controller adds its rules, which are in `kennel_core`, and one file of wiring. This crate must never import the server
//! or the store: it is a client of the API like any other.

pub mod certificates;
pub mod control_plane_role;
pub mod daemonset;
mod discovery;
pub mod disruption;
pub mod endpoints;
pub mod frame;
pub mod garbage_collector;
pub mod informers;
pub mod namespaces;
pub mod node_ipam;
pub mod nodes;
pub mod podgc;
pub mod resource_quota;
pub mod scheduler;
pub mod token_cleaner;
pub mod view;
