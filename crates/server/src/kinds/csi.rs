//! The rules of CsiNode, CsiDriver.

use super::Strategy;

/// The rules of CsiNode.
#[derive(Debug)]
pub struct CsiNode;

impl Strategy for CsiNode {}

/// The rules of CsiDriver.
#[derive(Debug)]
pub struct CsiDriver;

impl Strategy for CsiDriver {}
