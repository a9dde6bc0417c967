//! The store's tests against its public face, in one binary so that they link once.

mod basics;
mod common;
mod model;
