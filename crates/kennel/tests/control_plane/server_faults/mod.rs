//! What a server does when its clients, its disk or its end are not as they should be: over real
//! sockets, against the real binary. Every refusal is a proper Status, nothing that was acknowledged is
//! lost, and afterwards all goes on as before.

mod broken_listener;
mod clients;
mod disk;
mod failed_starts;
mod files_and_logs;
pub(crate) mod fixture;
mod flood;
mod malformed_requests;
mod shutdown;
