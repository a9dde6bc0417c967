//! Logs, exec, attach, port-forward, proxies and usage through the server, over real sockets and TLS, to a test
//! agent.

mod agent;
mod certificates;
mod client;
mod fixture;
mod logs;
mod proxies;
mod streams;
mod usage;
