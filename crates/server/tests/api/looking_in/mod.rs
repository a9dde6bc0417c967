//! Logs, shells, tunnels and proxies: what a client and a node's agent see of each other through the server,
//! over real sockets and TLS. The agent is a small one of the tests' own.

mod agent;
mod client;
mod logs;
mod proxies;
mod streams;
mod world;
