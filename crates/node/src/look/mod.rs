//! Looking in: the agent's own HTTPS server, which speaks the kubelet's API to the API server.
//!
//! ```text
//!   kubectl ─▶ API server ─▶ server (who are you, may you?) ─┬▶ logs     files of the machine
//!                                                            ├▶ stream   exec, attach, port-forward ─▶ runtime
//!                                                            └▶ metrics, pods, healthz
//! ```
//!
//! Nothing here changes a pod or decides about one.

pub mod stream;
