//! Controllers and the scheduler, against any Kubernetes API.
//!
//! ```text
//!   API ──watch──▶ informers ─▶ view ─▶ kennel_core (decides) ─▶ client::write ─────▶ API
//!                                             ▲                          │
//!                                             └────── client::work ◀─────┘ how it went
//! ```
//!
//! Each controller is one task with one loop: it takes what happened, asks the rules of
//! `kennel_core` what to do, and lets [`kennel_client::work`] carry it out. This crate must never
//! import the server or the store: it is a client like any other.

pub mod certificates;
pub mod collector;
pub mod control_plane_role;
pub mod daemonset;
mod discover;
pub mod endpoints;
pub mod informers;
pub mod namespaces;
pub mod nodes;
pub mod podgc;
pub mod scheduler;
pub mod shape;
pub mod tokens;
pub mod view;
