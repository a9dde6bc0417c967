//! The rules of PersistentVolumeClaim.

use super::Strategy;

/// The rules of PersistentVolumeClaim.
#[derive(Debug)]
pub struct PersistentVolumeClaim;

impl Strategy for PersistentVolumeClaim {}
