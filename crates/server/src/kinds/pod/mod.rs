//! The rules of Pod.

use super::Strategy;

/// The rules of Pod.
#[derive(Debug)]
pub struct Pod;

impl Strategy for Pod {}
