//! The rules of Lease.

use super::Strategy;

/// The rules of Lease.
#[derive(Debug)]
pub struct Lease;

impl Strategy for Lease {}
