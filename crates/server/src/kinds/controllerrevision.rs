//! The rules of ControllerRevision.

use super::Strategy;

/// The rules of ControllerRevision.
#[derive(Debug)]
pub struct ControllerRevision;

impl Strategy for ControllerRevision {}
