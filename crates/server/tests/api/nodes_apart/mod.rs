//! Nodes are kept apart: each touches its own things and what its own pods name, nothing else.

mod needs;
mod restrictions;
mod walk;
mod world;
