//! `kennel why` against clusters with real problems. Situations that are slow or hard to create are tested in
//! `kennel_core::why`.

mod command_line;
mod eligibility;
pub(crate) mod fixture;
mod missing_pods;
mod real_processes;
mod several;
mod typos;
