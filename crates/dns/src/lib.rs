//! Names for daemons: a small DNS server that answers for the Services of a cluster, and for the daemon of
//! one node, and forwards the rest.
//!
//! It is a client of any Kubernetes API: it must never import the server or the store.
