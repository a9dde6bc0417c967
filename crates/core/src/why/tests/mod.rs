//! Situations, one test each: what is said about a node, word by word where people read it.

mod absences;
mod containers;
mod places;
mod pods;
mod rollouts;
mod room;
mod whole;
mod world;
