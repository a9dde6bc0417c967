//! `kennel dashboard`: a page about the DaemonSets of any cluster.
//!
//! ```text
//!   browser ─▶ http (connections, bounds) ─▶ access (token, cookie, Host, Origin) ─▶ routes ─▶ answers  (one request)
//!                                                                                         ├─▶ streams  (server-sent events)
//!                                                                                         ├─▶ actions  (POST)
//!                                                                                         └─▶ page     (embedded files)
//! ```
//!
//! It watches through `kennel_inspect` and writes nothing but the annotations of commands, and that only when changes are
//! allowed. It never imports `server`, `store` or `node`: it works with any Kubernetes API.

pub mod protocol;
