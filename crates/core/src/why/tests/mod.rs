//! One test per situation, with the exact message where users read it.

mod answer;
mod containers;
mod eligibility;
mod fixture;
mod missing_pods;
mod pods;
mod rollouts;
mod since;
mod staged;
mod typos;
mod unscheduled;
mod waiting;
