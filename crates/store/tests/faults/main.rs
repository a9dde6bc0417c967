//! Faults of the disk below the store: calls that fail, power cuts, and bits that flip.
//!
//! Each test takes its cases from a seed, in random order, for a bounded time ([`budget`]). To run them for longer than
//! `make test` does, as many seconds each as it should take:
//!
//! ```sh
//! KENNEL_FAULTS_SECONDS=3600 cargo test --release -p kennel-store --test faults -- --nocapture
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "test helpers are test code"
)]

mod calls;
mod disk;
mod flips;
mod oracle;
mod power_cuts;
mod record;
mod workload;

use std::time::{Duration, Instant};

/// How long each test of this binary may run cases.
const SECONDS: u64 = 8;

/// Replaces [`SECONDS`].
const SECONDS_VARIABLE: &str = "KENNEL_FAULTS_SECONDS";

/// The time that a test has for its cases.
struct Budget {
    end: Instant,
}

impl Budget {
    fn is_left(&self) -> bool {
        Instant::now() < self.end
    }
}

fn budget() -> Budget {
    let given = std::env::var(SECONDS_VARIABLE).ok();
    let given = given.map(|text| text.parse().expect("KENNEL_FAULTS_SECONDS is a number"));
    let time = Duration::from_secs(given.unwrap_or(SECONDS));
    Budget {
        end: Instant::now() + time,
    }
}
