//! Logs, exec, attach, port-forward and proxies through the server, over real sockets and TLS, to a test
//! agent.

mod agent;
mod client;
mod fixture;
mod logs;
mod proxies;
mod streams;
