//! `kennel dashboard` against simulated nodes, without a browser: who gets what, and what the streams and answers say. What a
//! browser makes of it is tested beside the page.

mod access;
mod actions;
mod answers;
mod faults;
mod fixture;
mod streams;
