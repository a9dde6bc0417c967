//! The rules of Node.

use super::Strategy;

/// The rules of Node.
#[derive(Debug)]
pub struct Node;

impl Strategy for Node {}
