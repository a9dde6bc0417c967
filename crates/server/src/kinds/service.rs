//! The rules of Service.

use super::Strategy;

/// The rules of Service.
#[derive(Debug)]
pub struct Service;

impl Strategy for Service {}
