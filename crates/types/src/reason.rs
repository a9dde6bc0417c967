//! The machine-readable reasons of a `Status`, which clients decide on.

use std::fmt;

/// `Status.reason`. Spelled as in `k8s.io/apimachinery`; unknown reasons parse to [`Reason::Unknown`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No reason, or one that is not listed here. Spelled as the empty string.
    #[default]
    Unknown,
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
}

impl Reason {
    const ALL: [Self; 17] = [
        Self::AlreadyExists,
        Self::BadRequest,
        Self::Conflict,
        Self::Expired,
        Self::Forbidden,
        Self::Gone,
        Self::InternalError,
        Self::Invalid,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::NotFound,
        Self::RequestEntityTooLarge,
        Self::ServiceUnavailable,
        Self::Timeout,
        Self::TooManyRequests,
        Self::Unauthorized,
        Self::UnsupportedMediaType,
    ];

    pub fn parse(text: &str) -> Self {
        let known = Self::ALL.into_iter().find(|reason| reason.as_str() == text);
        known.unwrap_or_default()
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::AlreadyExists => "AlreadyExists",
            Self::BadRequest => "BadRequest",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::Forbidden => "Forbidden",
            Self::Gone => "Gone",
            Self::InternalError => "InternalError",
            Self::Invalid => "Invalid",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::NotFound => "NotFound",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::Unauthorized => "Unauthorized",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_parses_back() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), reason);
        }
        assert_eq!(Reason::parse("NamespaceTerminating"), Reason::Unknown);
    }
}
