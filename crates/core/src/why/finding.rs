//! What is found out about one node, before it becomes part of the answer.

use kennel_types::Timestamp;

use super::answer::{Cause, Verdict};
use super::log::LogSource;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) cause: Cause,
    /// Without pod names and times, so that nodes in the same state can be grouped.
    pub(super) message: String,
    pub(super) remedy: Option<String>,
    /// When the trouble began.
    pub(super) since: Option<Timestamp>,
    pub(super) pod: Option<String>,
    pub(super) log: Option<LogSource>,
}

impl Finding {
    pub(super) fn new(verdict: Verdict, cause: Cause, message: impl Into<String>) -> Self {
        Self {
            verdict,
            cause,
            message: message.into(),
            remedy: None,
            since: None,
            pod: None,
            log: None,
        }
    }

    pub(super) fn missing(cause: Cause, message: impl Into<String>) -> Self {
        Self::new(Verdict::Missing, cause, message)
    }

    #[must_use]
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    #[must_use]
    pub(super) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    #[must_use]
    pub(super) fn log(mut self, log: LogSource) -> Self {
        self.log = Some(log);
        self
    }
}
