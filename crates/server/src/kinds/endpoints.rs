//! The rules of Endpoints.

use super::Strategy;

/// The rules of Endpoints.
#[derive(Debug)]
pub struct Endpoints;

impl Strategy for Endpoints {}
