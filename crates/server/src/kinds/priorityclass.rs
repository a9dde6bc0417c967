//! The rules of PriorityClass.

use super::Strategy;

/// The rules of PriorityClass.
#[derive(Debug)]
pub struct PriorityClass;

impl Strategy for PriorityClass {}
