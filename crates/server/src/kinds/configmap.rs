//! The rules of ConfigMap.

use super::Strategy;

/// The rules of ConfigMap.
#[derive(Debug)]
pub struct ConfigMap;

impl Strategy for ConfigMap {}
