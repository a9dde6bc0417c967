//! The rules of Secret.

use super::Strategy;

/// The rules of Secret.
#[derive(Debug)]
pub struct Secret;

impl Strategy for Secret {}
