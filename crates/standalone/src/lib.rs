//! A whole cluster in one process, as `kennel up` and the playground run it.
//!
//! ```text
//!   server ──▶ clients (in-process, one identity each)
//!                 │
//!                 ▼
//!   supervisor: controller_manager · simulated nodes · embedded_node · DNS server · dashboard
//! ```
//!
//! Controllers and nodes are clients of the API with the rights of their roles. They only skip the socket.

pub mod clients;
pub mod controller_manager;
pub mod dashboard;
pub mod embedded_node;
pub mod request_counts;
pub mod server;
pub mod supervisor;
