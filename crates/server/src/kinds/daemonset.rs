//! The rules of DaemonSet.

use super::Strategy;

/// The rules of DaemonSet.
#[derive(Debug)]
pub struct DaemonSet;

impl Strategy for DaemonSet {}
