//! The Kubernetes API over a store.
//!
//! ```text
//!  server       listener, TLS and backend of one process: started and stopped in order; backup at an interval
//!    │  backend: the store and the API over it
//!    ▼
//!  http         connections, HTTP/1.1 and HTTP/2, access log; `answer` also serves clients in this process
//!    │
//!    ▼
//!  router       authenticates and authorises a request, dispatches it by its path
//!    │
//!    ▼
//!  verbs        get, list, watch, create, update, patch, delete, connect       discovery, openapi
//!    │            bootstrap, expire, upkeep and certificate_admin write as well
//!    ▼
//!  admit        rules that need other objects or the user      projection: resources computed from others
//!    │
//!    ▼
//!  api          state of all requests: store, watch hubs, authenticate, authorize, audit, fairness,
//!    │            certificates, revocation, quota, health
//!    ▼
//!  request, response, status, upgrade, agent_client, agent_usage, tls, tcp, limits, metrics
//!  registry, object, kinds, schema, table, patch, protobuf
//! ```
//!
//! Modules import from their own level and from those below. One module refers upwards: the rows of
//! [`registry`] name the admission of their resource, and the projection of those that are not stored.
//!
//! This crate must never import `control` or `node`: they are clients like any other.

pub mod admit;
mod agent_client;
mod agent_usage;
pub mod api;
pub mod audit;
mod authenticate;
mod authorize;
pub mod backend;
pub mod backup;
mod bootstrap;
mod certificate_admin;
pub mod certificates;
pub mod continuation;
pub mod data_dir;
mod derived;
pub mod discovery;
pub mod doctor;
pub mod expire;
mod fairness;
pub mod field;
mod health;
pub mod http;
pub mod kinds;
pub mod limits;
pub mod live;
pub mod metrics;
pub use kennel_core::names;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod pki;
pub mod present;
mod projection;
pub mod protobuf;
pub mod quota;
pub mod registry;
pub mod request;
pub mod response;
mod revocation;
mod router;
pub mod schema;
pub mod seal;
pub mod server;
pub mod status;
pub mod table;
mod tcp;
mod tls;
mod tree;
mod upgrade;
mod upkeep;
pub mod verbs;
pub mod watch;
