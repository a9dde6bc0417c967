//! The contract of the API for its clients: requests in, answers and watch lines out, over a store in a
//! directory of its own. Without a socket and TLS; these tests use only the public API.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod addresses;
mod admission;
mod apply;
mod apply_histories;
mod apply_input;
mod apply_kinds;
mod audit;
mod authentication;
mod authorization;
mod bootstrap;
mod certificate_rotation;
mod certificates;
mod coalescing;
mod connect;
mod controller_rights;
mod creation;
mod damaged;
mod deletion;
mod disruption;
mod ephemeral_containers;
mod escalation;
mod events;
mod fields;
mod fixture;
mod generations;
mod http_protocol;
mod lists;
mod managers;
mod namespaces;
mod node_isolation;
mod on_etcd;
mod openapi;
mod openapi_fields;
mod own_services;
mod patches;
mod pod_security;
mod pods;
mod protobuf;
mod quotas;
mod representations;
mod revisions;
mod rollout_policies;
mod selectors;
mod store_answers;
mod updates;
mod upgrades;
mod upstream_values;
mod watches;
