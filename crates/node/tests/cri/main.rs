//! Tests of the CRI runtime against a real containerd with real containers, through the trait `Runtime` only. They need
//! root.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod exits;
mod fixture;
mod images;
mod interrupted;
mod lifecycle;
mod networks;
mod outage;
mod security;
mod streams;
