//! Every reason that a request is refused with, and when: what the reference says of them. Debug builds, and so all
//! tests, insist that no other is used.

use kennel_types::Reason;

/// A reason that clients may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: Reason,
    /// When it is given, and what to do about it.
    pub when: &'static str,
}

/// Is this one of them? What a node's agent says in its own words has no reason, and any code.
pub fn knows(code: u16, reason: Reason) -> bool {
    let is = |known: &Known| known.code == code && known.reason == reason;
    reason == Reason::Unknown || ALL.iter().any(is)
}

const fn known(code: u16, reason: Reason, when: &'static str) -> Known {
    Known { code, reason, when }
}

/// All of them, by code.
#[rustfmt::skip] // a table reads best with a line for each
pub static ALL: &[Known] = &[
    known(400, Reason::BadRequest,
        "The request makes no sense: a body that is no object or of another kind, a query that cannot be read, an \
         object in another namespace than its path."),
    known(401, Reason::Unauthorized, "Credentials were given, and they are wrong or have expired."),
    known(403, Reason::Forbidden,
        "The user has no right to do this, and the message says to what; or a rule forbids it to everyone: \
         admission, a namespace that is being deleted."),
    known(404, Reason::NotFound, "There is no such object, or no such resource on this server."),
    known(405, Reason::MethodNotAllowed, "The resource is there and does not know this verb."),
    known(406, Reason::NotAcceptable, "The client accepts only formats that this server does not write; it writes JSON."),
    known(409, Reason::AlreadyExists, "The name is taken."),
    known(409, Reason::Conflict,
        "The object is not as the client believes: it was changed since it was read, has another UID, or is in a \
         state that does not allow this. Read it again, and try again."),
    known(410, Reason::Expired,
        "A list or watch wants to go on from where it is too old to go on from. List again; the answer may have a \
         token to go on with."),
    known(413, Reason::RequestEntityTooLarge,
        "The body is larger than the server takes, or asks for more than one request may."),
    known(415, Reason::UnsupportedMediaType,
        "The body is in a format that is not read here; the message lists those that are."),
    known(422, Reason::Invalid,
        "The object breaks rules of its kind; `details.causes` has one entry for each mistake, by field. Or a patch \
         does not apply."),
    known(429, Reason::TooManyRequests,
        "All seats are taken. Come back after `Retry-After`, as client libraries do by themselves."),
    known(500, Reason::InternalError, "The server's fault; its log has more."),
    known(503, Reason::ServiceUnavailable,
        "Not now: the server starts or stops, or a node's agent cannot serve. Try again."),
    known(504, Reason::Timeout,
        "The client has seen a revision that this server has not reached: a server that was restored from a backup, \
         say."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_known_with_its_code() {
        let check = |code, reason, expected| assert_eq!(knows(code, reason), expected, "{reason}");
        check(409, Reason::Conflict, true);
        check(404, Reason::Conflict, false);
        check(418, Reason::Conflict, false);
        check(502, Reason::Unknown, true);
    }

    #[test]
    fn reasons_are_in_order() {
        assert!(ALL.is_sorted_by_key(|known| (known.code, known.reason)));
    }
}
