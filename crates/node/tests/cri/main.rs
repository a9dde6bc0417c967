//! The `cri` runtime against a real containerd with real containers: what the agent does to it through the
//! trait, and nothing else. They need root.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod endings;
mod images;
mod interrupted;
mod life;
mod networks;
mod outage;
mod security;
mod streams;
mod world;
