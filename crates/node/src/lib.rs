//! The node agent and its runtimes, against any Kubernetes API.
//!
//! ```text
//!   API ──watch──▶ pods ─▶ runtime (cri, process)        agent: puts a real node together
//!                   ▲ inputs, probes                     look: answers kubectl
//!   API ──watch──▶ simulated ─▶ stages (what comes next in a pod's life) ─▶ status, delete ──▶ API
//!                     │            ▲
//!                     │         scenario (what happens to whom) ◀─ dice (chance, by seed and name)
//!                     └─ nodes and their leases
//! ```
//!
//! This crate must never import the server or the store: it is a client like any other. It borrows the frame of
//! watching and writing from `kennel_client`.

pub mod agent;
pub mod dice;
pub mod inputs;
pub mod look;
pub mod manifests;
pub mod pods;
pub mod pressure;
pub mod probes;
pub mod runtime;
pub mod scenario;
pub mod simulated;
pub mod stages;
mod unverified_tls;
