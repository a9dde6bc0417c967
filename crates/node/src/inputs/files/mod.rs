//! The small files that every pod has: names of hosts, name servers, last words.

pub(super) mod dns;
pub(super) mod hostname;
pub(super) mod hosts;
pub(super) mod message;
