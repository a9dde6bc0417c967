//! The Kubernetes API over a store.
//!
//! | level | modules |
//! |---|---|
//! | listener, TLS and backend of one process: started and stopped in order | `server` |
//! | the store and the API over it, without a socket | `backend`, `background`, `start_error`, `etcd_store`, `migrate`, `doctor` |
//! | connections, HTTP/1.1 and HTTP/2, access log; `http::answer` also serves clients in this process | `http` |
//! | authenticates and authorises a request, dispatches it by its path | `router` |
//! | the verbs, other forms that clients ask for, and what else writes | `verbs`, `discovery`, `openapi`, `bootstrap`, `expire`, `certificate_renewal`, `certificate_admin`, `documents` |
//! | rules that need other objects or the user | `admit` |
//! | the state of all requests | `api` |
//! | what that state consists of | `authenticate`, `authorize`, `audit`, `fairness`, `certificates`, `etcd_certificates`, `listed`, `revocation`, `quota`, `quota_ledger`, `service_allocations`, `damaged`, `join_claims`, `health`, `watch`, `snapshots`, `derived`, `backup`, `agent_client`, `agent_usage`, `upgrade` |
//! | requests, responses and formats | `advertised`, `request`, `response`, `status`, `audit_annotations`, `continuation`, `present`, `registry`, `projection`, `object`, `kinds`, `schema`, `table`, `patch`, `protobuf`, `field`, `tree`, `clock`, `names`, `limits`, `metrics`, `live`, `tcp`, `tls`, `pki`, `seal`, `data_dir` |
//!
//! Modules import from their own level and from those below; a test compares the imports with this table. One module
//! refers upwards: the rows of [`registry`] name the admission of their resource.
//!
//! This crate must never import `control` or `node`: they are clients like any other.

pub mod admit;
pub mod advertised;
mod agent_client;
mod agent_usage;
pub mod api;
pub mod audit;
mod audit_annotations;
mod authenticate;
mod authorize;
pub mod backend;
mod background;
pub mod backup;
mod bootstrap;
mod certificate_admin;
pub mod certificates;
mod clock;
pub mod continuation;
mod damaged;
pub mod data_dir;
mod derived;
pub mod discovery;
pub mod doctor;
mod documents;
mod etcd_certificates;
mod etcd_store;
pub mod expire;
mod fairness;
pub mod field;
mod health;
pub mod http;
mod join_claims;
pub mod kinds;
#[cfg(test)]
mod layer_tests;
pub mod limits;
mod listed;
pub mod live;
pub mod metrics;
pub mod migrate;
pub use kennel_core::names;
mod certificate_renewal;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod pki;
pub mod present;
mod projection;
pub mod protobuf;
pub mod quota;
mod quota_ledger;
pub mod registry;
pub mod request;
pub mod response;
mod revocation;
mod router;
pub mod schema;
pub mod seal;
pub mod server;
mod service_allocations;
mod snapshots;
mod start_error;
pub mod status;
pub mod table;
mod tcp;
mod tls;
mod tree;
#[doc(hidden)]
pub mod upgrade;
pub mod verbs;
pub mod watch;
