//! Controllers and the scheduler, against any Kubernetes API.
//!
//! ```text
//!   API ──watch──▶ run::feed ─▶ view ─▶ kennel_core (decides) ─▶ run::api ──write──▶ API
//!                                          ▲                         │
//!                                          └────── run::work ◀───────┘ how it went
//! ```
//!
//! Each controller is one task with one loop: it takes what happened, asks the rules of
//! `kennel_core` what to do, and lets [`run::work`] carry it out. This crate must never import the
//! server or the store: it is a client like any other.

pub mod daemonset;
pub mod run;
pub mod scheduler;
pub mod view;
