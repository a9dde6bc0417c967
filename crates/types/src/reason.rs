//! The machine-readable reasons of a `Status`, which clients decide on.

use crate::text_enum::text_enum;

text_enum! {
    /// `Status.reason`. Spelled as in `k8s.io/apimachinery`; unknown reasons parse to [`Reason::Unknown`].
    pub enum Reason, else Unknown {
        /// No reason, or one that is not listed here. Spelled as the empty string.
        #[default]
        Unknown = "",
        AlreadyExists = "AlreadyExists",
        BadRequest = "BadRequest",
        Conflict = "Conflict",
        Expired = "Expired",
        Forbidden = "Forbidden",
        Gone = "Gone",
        /// Kennel's own: upstream has no reason for 507.
        InsufficientStorage = "InsufficientStorage",
        InternalError = "InternalError",
        Invalid = "Invalid",
        MethodNotAllowed = "MethodNotAllowed",
        NotAcceptable = "NotAcceptable",
        NotFound = "NotFound",
        RequestEntityTooLarge = "RequestEntityTooLarge",
        ServiceUnavailable = "ServiceUnavailable",
        Timeout = "Timeout",
        TooManyRequests = "TooManyRequests",
        Unauthorized = "Unauthorized",
        UnsupportedMediaType = "UnsupportedMediaType",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_parse_back() {
        for reason in [Reason::Unknown, Reason::AlreadyExists, Reason::Timeout] {
            assert_eq!(Reason::from(reason.as_str()), reason);
        }
        assert_eq!(Reason::from("NamespaceTerminating"), Reason::Unknown);
    }
}
