//! The Kubernetes API over a store.
//!
//! A request comes in through [`http`], is understood by [`request`], finds its row in
//! [`registry`], and is carried out by [`verbs`] with the help of the rooms below:
//!
//! ```text
//!  http ─▶ request ─▶ verbs ─▶ schema (decode, strict, prune) ─▶ kinds (default, validate)
//!                       │                                            │
//!                       │          patch (json, merge, strategic)    admit
//!                       ▼                                            ▼
//!                     table, discovery, openapi                 store.txn ─▶ watch
//! ```
//!
//! This crate must never import `control` or `node`: they are clients like any other.

pub mod admit;
pub mod api;
pub mod audit;
mod authenticate;
mod authorize;
mod bootstrap;
pub mod continuation;
pub mod discovery;
pub mod expire;
pub mod field;
mod follow;
pub mod http;
pub mod inprocess;
pub mod kinds;
pub mod metrics;
pub use kennel_core::names;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod pki;
pub mod present;
pub mod protobuf;
pub mod registry;
pub mod request;
pub mod schema;
pub mod seal;
pub mod server;
pub mod status;
pub mod table;
pub mod verbs;
pub mod watch;
