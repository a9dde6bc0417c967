//! The rules of EndpointSlice.

use super::Strategy;

/// The rules of EndpointSlice.
#[derive(Debug)]
pub struct EndpointSlice;

impl Strategy for EndpointSlice {}
