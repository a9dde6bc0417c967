//! The life of pods on a node, from their arrival to their end, with the clock in our hands.

mod arrivals;
mod endings;
mod lives;
mod restarts;
mod store;
mod world;
