//! The node agent and its runtimes, against any Kubernetes API.
//!
//! ```text
//!   API ──watch──▶ pods ─▶ runtime (cri, process, fake)  agent: assembles a node of these modules
//!                   ▲ inputs, probes                     kubelet_api: logs, exec, attach, port-forward
//! ```
//!
//! This crate must never import the server or the store: it is a client like any other. It uses `kennel_client` to
//! watch and to write.

pub mod agent;
pub mod cleanup;
pub(crate) mod directory_watch;
pub(crate) mod files;
pub mod inputs;
pub(crate) mod json;
pub mod kubelet_api;
pub mod manifests;
pub mod mountinfo;
pub mod network;
pub mod pods;
pub mod pressure;
pub mod probes;
pub mod runtime;
pub(crate) mod sync;
mod unverified_tls;
