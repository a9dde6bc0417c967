//! The rules of PersistentVolume.

use super::Strategy;

/// The rules of PersistentVolume.
#[derive(Debug)]
pub struct PersistentVolume;

impl Strategy for PersistentVolume {}
