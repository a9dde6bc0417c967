//! The contract of the API as its clients meet it: requests in, answers and watch lines out, over
//! a store in a directory of its own. No socket and no TLS; nothing here looks inside the server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod access;
mod admission;
mod audited;
mod bootstrap;
mod certificates;
mod changes;
mod controllers_apart;
mod creation;
mod deletion;
mod escalation;
mod events;
mod fields;
mod forms;
mod generations;
mod identity;
mod kit;
mod lists;
mod looking_in;
mod namespaces;
mod nodes_apart;
mod patches;
mod pods;
mod protobuf;
mod revisions;
mod selectors;
mod watches;
mod wire;
