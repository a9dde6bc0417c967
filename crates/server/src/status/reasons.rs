//! The codes and reasons of all errors, for the reference documentation. Debug builds, and so all tests, assert
//! that no other is used.

use kennel_types::Reason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The HTTP status code.
    pub code: u16,
    pub reason: Reason,
    /// When the server answers with it, and what the client can do.
    pub when: &'static str,
}

/// Whether the table has this code and reason. Errors of a node's agent may have any code and no reason.
pub fn knows(code: u16, reason: Reason) -> bool {
    let is = |known: &Known| known.code == code && known.reason == reason;
    reason == Reason::Unknown || ALL.iter().any(is)
}

const fn known(code: u16, reason: Reason, when: &'static str) -> Known {
    Known { code, reason, when }
}

/// By code and reason.
#[rustfmt::skip] // a table reads best with a line for each
pub static ALL: &[Known] = &[
    known(400, Reason::BadRequest,
        "The request is malformed: a body that is not an object or is of another kind, a query that does not parse, \
         an object in another namespace than its path."),
    known(401, Reason::Unauthorized,
        "The credentials are invalid or have expired."),
    known(403, Reason::Forbidden,
        "The user is not authorized, and the message says what is missing; or admission rejects it for \
         everyone, for example in a namespace that is being deleted."),
    known(404, Reason::NotFound,
        "There is no such object, or the server does not serve the resource."),
    known(405, Reason::MethodNotAllowed,
        "The resource does not support this verb."),
    known(406, Reason::NotAcceptable,
        "The `Accept` header allows only formats that the server does not write; it writes JSON."),
    known(409, Reason::AlreadyExists,
        "An object of this name exists."),
    known(409, Reason::Conflict,
        "A precondition failed: the object was changed since it was read, has another UID, or is in a state that does \
         not allow this. Read it again and retry. Or other managers own fields that an apply changes; `details.causes` \
         names them."),
    known(410, Reason::Expired,
        "A list or watch continues from a revision that is no longer in the history, or a watch from one that the \
         server has not reached, after a restore from a backup. List again; the answer may have a token to continue \
         with."),
    known(413, Reason::RequestEntityTooLarge,
        "The body exceeds the size limit, or the request exceeds another limit."),
    known(415, Reason::UnsupportedMediaType,
        "The server does not read the format of the body; the message lists those it reads."),
    known(422, Reason::Invalid,
        "Validation failed; `details.causes` has one entry for each error, by field. Or a patch does not apply."),
    known(429, Reason::TooManyRequests,
        "The server is overloaded: no seat became free. Retry after `Retry-After`, as client libraries do. Or a disruption \
         budget does not allow an eviction now; `details.causes` says which."),
    known(500, Reason::InternalError,
        "An error of the server; its log has more."),
    known(503, Reason::ServiceUnavailable,
        "The server is starting or stopping, or a node's agent is unavailable. Retry."),
    known(504, Reason::Timeout,
        "The server has not reached the revision that the client names, for example after a restore from a backup. Or the \
         request took longer than a minute, and may have been applied: read before you retry."),
    known(507, Reason::InsufficientStorage,
        "The write would exceed the storage quota (`--storage-quota`), or etcd is out of space; the message names the remedy. \
         Delete objects, or have the quota raised; deletions always work."),
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
