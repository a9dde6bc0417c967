//! One test per situation, with the exact message where users read it.

mod answer;
mod containers;
mod eligibility;
mod fixture;
mod missing_pods;
mod pods;
mod rollouts;
mod staged;
mod unscheduled;
mod waiting;
