//! What the signer reads of a request: the fuzz target of `kennel-testkit` compares it with what the server shows to approvers, and
//! nothing else calls this.

use super::request;

/// The common name and the organisations that a certificate would have, but for the signature of the request.
pub fn subject(pem: &[u8]) -> Option<(String, Vec<String>)> {
    request::unverified_subject(pem)
}

/// A certificate that somebody shows.
pub fn certificate(pem: &str) {
    let _names = request::names_in(pem);
    let _end = request::end_of(pem.as_bytes());
}
