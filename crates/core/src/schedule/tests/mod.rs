//! Tests of the scheduler's rules through its public API.

mod filters;
mod harness;
mod histories;
mod pod_affinity;
mod preemption;
mod requeue;
mod scores;
