//! Answers of `kennel_core::why` as text: for one node ([`detail`]) and for all ([`summary`]).

pub mod detail;
mod log;
pub mod summary;
