//! Playgrounds as people use them: what there is, and that nothing is left of it.

mod ends;
mod ground;
mod nodes;
