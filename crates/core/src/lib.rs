//! The rules of Kennel as pure functions: given what is, what should be.
//!
//! Nothing here does I/O, reads a clock, waits or draws random numbers.

pub mod quantity;
