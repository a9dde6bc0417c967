//! The rules of ServiceAccount.

use super::Strategy;

/// The rules of ServiceAccount.
#[derive(Debug)]
pub struct ServiceAccount;

impl Strategy for ServiceAccount {}
