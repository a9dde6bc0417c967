//! The life of pods on a node, from admission to removal, with a paused clock.

mod admission;
mod ephemeral_containers;
mod fake_api;
mod fixture;
mod lifecycle;
mod restarts;
mod termination;
