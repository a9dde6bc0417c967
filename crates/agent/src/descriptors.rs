//! The limit on open files: every connection is one, and the default soft limit is small.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "cannot raise the limit on open files");
    }
}

/// How many files this process may open; none if that is not limited.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
