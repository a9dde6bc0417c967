//! The headers of every request of our clients.

use http::header::USER_AGENT;
use http::{HeaderName, HeaderValue};
use kennel_types::meta::{MANAGED_FIELDS_HEADER, OMIT_MANAGED_FIELDS};

/// The field manager, and what is not read: the fields that our clients write belong to the manager `kennel`, and they
/// do not read `metadata.managedFields`, which a Kennel server leaves out then.
pub fn headers() -> [(HeaderName, HeaderValue); 2] {
    let agent = concat!("kennel/", env!("CARGO_PKG_VERSION"));
    [
        (USER_AGENT, HeaderValue::from_static(agent)),
        (
            HeaderName::from_static(MANAGED_FIELDS_HEADER),
            HeaderValue::from_static(OMIT_MANAGED_FIELDS),
        ),
    ]
}
