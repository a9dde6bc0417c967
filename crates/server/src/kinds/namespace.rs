//! The rules of Namespace.

use super::Strategy;

/// The rules of Namespace.
#[derive(Debug)]
pub struct Namespace;

impl Strategy for Namespace {}
