//! `kennel why` as people and scripts use it, against clusters where things go wrong for real. The
//! situations that take long or are hard to bring about are tests of `kennel_core::why`.

mod asking;
mod fixture;
mod placing;
mod real;
mod running;
