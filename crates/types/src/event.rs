//! Events (`v1`), as far as people are shown them.

use std::borrow::Cow;

use serde::Deserialize;

use crate::meta::null_as_default;
use crate::text_enum::text_enum;
use crate::time::Timestamp;

text_enum! {
    /// The reasons that `kennel why` looks for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EventReason<'a>, else Other(&'a str) {
        BackOff = "BackOff",
        FailedAttachVolume = "FailedAttachVolume",
        FailedCreate = "FailedCreate",
        FailedCreatePodSandBox = "FailedCreatePodSandBox",
        FailedMapVolume = "FailedMapVolume",
        FailedMount = "FailedMount",
        FailedPodSandBoxStatus = "FailedPodSandBoxStatus",
        Killing = "Killing",
        NetworkNotReady = "NetworkNotReady",
        Unhealthy = "Unhealthy",
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    /// `Normal` or `Warning`.
    #[serde(deserialize_with = "null_as_default")]
    pub r#type: String,
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    pub count: Option<i64>,
    #[serde(deserialize_with = "null_as_default")]
    pub involved_object: ObjectReference,
    pub first_timestamp: Option<Timestamp>,
    pub last_timestamp: Option<Timestamp>,
    /// Set instead of the timestamps by clients of `events.k8s.io`.
    pub event_time: Option<Timestamp>,
    pub series: Option<EventSeries>,
    pub metadata: EventMetadata,
    /// Which of several processes of the component wrote it; empty for most components.
    #[serde(deserialize_with = "null_as_default")]
    pub reporting_instance: String,
}

/// An event to record on some object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// In CamelCase, for machines. Upstream's, where there is one.
    pub reason: Cow<'static, str>,
    pub message: String,
    /// It is told once, whatever process tells it: not again while the event exists.
    pub once: bool,
}

impl Note {
    pub fn new(warning: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning,
            reason: reason.into(),
            message: message.into(),
            once: false,
        }
    }

    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectReference {
    pub uid: String,
    pub name: String,
    pub field_path: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventSeries {
    pub count: i64,
    pub last_observed_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventMetadata {
    pub creation_timestamp: Option<Timestamp>,
}

impl Event {
    pub fn reason(&self) -> EventReason<'_> {
        EventReason::from(&*self.reason)
    }

    /// When it happened last; the epoch when it does not say.
    pub fn last_seen(&self) -> Timestamp {
        let series = self.series.as_ref();
        series
            .and_then(|series| series.last_observed_time)
            .or(self.last_timestamp)
            .or(self.event_time)
            .or(self.metadata.creation_timestamp)
            .unwrap_or_default()
    }

    /// When it happened first; when it happened last if it does not say.
    pub fn first_seen(&self) -> Timestamp {
        self.first_timestamp
            .or(self.event_time)
            .or(self.metadata.creation_timestamp)
            .unwrap_or_else(|| self.last_seen())
    }

    /// How often it happened: at least once.
    pub fn occurrences(&self) -> i64 {
        let series = self.series.as_ref().map(|series| series.count);
        series.or(self.count).unwrap_or(1).max(1)
    }
}
