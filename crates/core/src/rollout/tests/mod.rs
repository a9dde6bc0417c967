//! What people are shown of a rollout, from a snapshot.

pub(crate) mod fixture;
mod hand_over;
mod history;
mod plan;
mod request;
mod status;
