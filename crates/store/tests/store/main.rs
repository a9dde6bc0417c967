//! The store's tests against its public face, in one binary so that they link once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests too"
)]

mod basics;
mod child;
mod common;
mod concurrency;
mod crash;
mod full;
mod model;
mod refusals;
mod sealed;
mod sync;
