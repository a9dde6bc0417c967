//! The last log lines of a container that exits again and again.

use serde::Serialize;

use super::snapshot::Snapshot;

/// The run of a container whose log shows why it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogSource {
    pub pod: String,
    pub container: String,
    /// The run before the present one.
    pub previous: bool,
}

/// The last lines of a log, or why it cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSnapshot {
    pub source: LogSource,
    pub lines: Result<Vec<String>, LogError>,
}

/// Why a log could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("you may not read logs (get pods/log)")]
    Forbidden,
    #[error("no answer within {0} s")]
    TimedOut(u64),
    /// The API's words.
    #[error("{0}")]
    Api(String),
    #[error("{0}")]
    Read(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogAnswer {
    #[serde(flatten)]
    pub source: LogSource,
    /// The last lines, the oldest first. Neither lines nor an error if the log was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl LogAnswer {
    pub(super) fn of(source: LogSource, snapshot: &Snapshot) -> Self {
        let read = snapshot.logs.iter().find(|log| log.source == source);
        let (lines, error) = match read.map(|log| &log.lines) {
            None => (None, None),
            Some(Ok(lines)) => (Some(lines.clone()), None),
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        Self {
            source,
            lines,
            error,
        }
    }
}
