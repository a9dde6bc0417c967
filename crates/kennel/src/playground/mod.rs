//! `kennel playground`: a cluster on this machine to try things on, and a guided tour of it.

pub(crate) mod stage;
pub(crate) mod tour;
