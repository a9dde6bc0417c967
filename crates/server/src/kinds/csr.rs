//! The rules of CertificateSigningRequest.

use super::Strategy;

/// The rules of CertificateSigningRequest.
#[derive(Debug)]
pub struct CertificateSigningRequest;

impl Strategy for CertificateSigningRequest {}
