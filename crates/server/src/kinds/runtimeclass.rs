//! The rules of RuntimeClass.

use super::Strategy;

/// The rules of RuntimeClass.
#[derive(Debug)]
pub struct RuntimeClass;

impl Strategy for RuntimeClass {}
