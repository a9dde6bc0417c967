//! The rules of CoreEvent, Event.

use super::Strategy;

/// The rules of CoreEvent.
#[derive(Debug)]
pub struct CoreEvent;

impl Strategy for CoreEvent {}

/// The rules of Event.
#[derive(Debug)]
pub struct Event;

impl Strategy for Event {}
