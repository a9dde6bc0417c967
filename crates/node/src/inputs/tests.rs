//! Tests of pods that are given things, with an API in the same process.

mod containers;
mod volumes;
