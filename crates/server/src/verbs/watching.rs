//! Watch: parses the request and starts a stream of `crate::watch`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::call::Call;
use super::read;
use crate::api::Api;
use crate::field::{FieldError, Path};
use crate::object;
use crate::projection::Projector;
use crate::registry::EmptyCollection;
use crate::request::accept::Form;
use crate::request::path::Place;
use crate::request::query::{VersionMatch, list_option};
use crate::response::{Body, Reply};
use crate::snapshots::Snapshot;
use crate::status::{ApiError, Result};
use crate::watch::event::line_of_json;
use crate::watch::stream::{Before, Stream};
use crate::watch::{Change, Filter, Shared};

/// The timeout of a watch without `timeoutSeconds`: random within upstream's range, so that watches that
/// start together do not end together.
const TIMEOUT_SECONDS: std::ops::Range<u64> = 1800..3600;
const TIMEOUT_SECONDS_MAX: u64 = 24 * 3600;

/// Where a watch begins.
enum Begin {
    /// With the current state, at least as new as `at_least`.
    State {
        at_least: Option<u64>,
        mark_end: bool,
    },
    /// With the events after this revision. It must not be in the future: then the store was restored from a
    /// backup, and the client's state is one that this store never had. Unlike upstream, which waits silently.
    After(u64),
}

pub(super) async fn watch(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let row = place.row;
    let presenter = call.presenter(row)?;
    let filter = Filter::new(row, place.namespace.as_deref(), &call.query)?;
    let begin = Begin::of(call)?;
    let bookmarks = call.query.flag("allowWatchBookmarks")?;
    let timeout = timeout(call)?;
    match begin {
        Begin::State {
            at_least: Some(version),
            ..
        } => read::wait_for(api, version).await?,
        Begin::After(version) => {
            if let Err(error) = read::wait_for_start(api, version).await {
                return refused(error);
            }
        }
        Begin::State { .. } if call.query.resource_version()?.is_none() => {
            read::confirm(api).await?;
        }
        Begin::State { .. } => {}
    }
    let projector = api.projector(row);
    let subscription = match &projector {
        Some(projector) => {
            let source = projector.source();
            api.hubs.of(source).subscribe(Filter::all(source))
        }
        None => api.hubs.of(row).subscribe(filter.clone()),
    };
    let subscription =
        subscription.ok_or_else(|| ApiError::unavailable("the server is shutting down"))?;
    let (before, covered) = match begin {
        Begin::State { mark_end, .. } => {
            let page = read::page(api, place, &filter);
            (Before::State(page.records, mark_end), page.revision)
        }
        Begin::After(version) => match history(api, place, &filter, version) {
            Ok((events, covered)) => (Before::History(events), covered),
            Err(expired) => return Ok(refusal(&expired)),
        },
    };
    let view = projector.map(|projector| (projector, filter));
    let stream = Stream::new(subscription, presenter, before, covered, bookmarks, timeout);
    let stream = stream.projected(view);
    Ok(Reply::stream(stream.into_body()))
}

impl Begin {
    fn of(call: &Call) -> Result<Self> {
        let version = call.query.resource_version()?;
        let matching = call.query.version_match()?;
        let initial = match call.query.get("sendInitialEvents") {
            None => None,
            Some(_) => Some(call.query.flag("sendInitialEvents")?),
        };
        match (initial, matching) {
            (Some(_), Some(VersionMatch::NotOlderThan)) => {}
            (Some(_), _) => {
                let path = Path::new("resourceVersionMatch");
                let words =
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return Err(list_option(FieldError::forbidden(&path, words)));
            }
            (None, Some(_)) => {
                let path = Path::new("resourceVersionMatch");
                let words = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return Err(list_option(FieldError::forbidden(&path, words)));
            }
            (None, None) => {}
        }
        let at_least = version.filter(|v| *v > 0);
        Ok(match (initial, at_least) {
            (Some(true), at_least) => Self::State {
                at_least,
                mark_end: true,
            },
            (_, Some(version)) => Self::After(version),
            (_, None) => Self::State {
                at_least: None,
                mark_end: false,
            },
        })
    }
}

fn timeout(call: &Call) -> Result<Duration> {
    let asked = call.query.number("timeoutSeconds")?.filter(|n| *n > 0);
    let seconds = asked.unwrap_or_else(|| fastrand::u64(TIMEOUT_SECONDS));
    Ok(Duration::from_secs(seconds.min(TIMEOUT_SECONDS_MAX)))
}

/// A watch that sends the error as an event and ends: some clients list again only after an ERROR event, not
/// after a failed request.
fn refusal(error: &ApiError) -> Reply {
    let line = line_of_json("ERROR", error.to_value().to_string().as_bytes());
    let stream = futures_util::stream::iter([line]);
    Reply::stream(Body::Stream(Box::pin(stream)))
}

/// The answer to a watch that cannot start: 410 as an event, so that the client lists again; others as the failure of the request.
fn refused(error: ApiError) -> Result<Reply> {
    if error.code == 410 {
        return Ok(refusal(&error));
    }
    Err(error)
}

type Replay = Vec<(Arc<Shared>, Change)>;

/// The events after a revision, and the revision up to which they are complete.
fn history(api: &Api, place: &Place, filter: &Filter, version: u64) -> Result<(Replay, u64)> {
    let projector = api.projector(place.row);
    let prefix = projector
        .as_ref()
        .map_or_else(|| object::prefix(place.row, None), Projector::prefix);
    let (events, covered) = match api.store.history(&prefix, version) {
        Ok(history) => (history.events, history.revision),
        Err(compacted) => {
            let snapshot = snapshot(api, place, version);
            let snapshot = snapshot.ok_or_else(|| read::too_old(version, compacted.oldest))?;
            let caught_up = snapshot.catch_up(&*api.store);
            (caught_up.events, caught_up.revision)
        }
    };
    let events = events.into_iter().flat_map(|event| match &projector {
        Some(projector) => projector.events(&event),
        None => vec![event],
    });
    let concerned = events.filter_map(|event| {
        let change = Change::of(&event, filter)?;
        Some((Arc::new(Shared::new(event)), change))
    });
    Ok((concerned.collect(), covered))
}

/// The snapshot of a paged list that a client continues by a watch: of the same namespace, or of all.
fn snapshot(api: &Api, place: &Place, version: u64) -> Option<Arc<Snapshot>> {
    let get = |namespace| {
        let prefix = object::prefix(place.row, namespace);
        api.snapshots.get(&prefix, version)
    };
    get(place.namespace.as_deref()).or_else(|| get(None))
}

/// A watch on a collection that is always empty: sends only bookmarks.
pub(super) async fn empty_watch(
    api: &Api,
    call: &Call,
    collection: &'static EmptyCollection,
) -> Result<Reply> {
    let begin = Begin::of(call)?;
    if let Begin::After(version) = begin
        && let Err(error) = read::wait_for_start(api, version).await
    {
        return refused(error);
    }
    let mut metadata = json!({"resourceVersion": api.store.revision().to_string()});
    let mut first = None;
    if matches!(begin, Begin::State { mark_end: true, .. }) {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        let (api_version, kind) = match call.form()? {
            Form::Object => (collection.api_version(), collection.kind),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata"),
            Form::Table(version) => (format!("meta.k8s.io/{version}"), "Table"),
        };
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        first = Some(line_of_json("BOOKMARK", object.to_string().as_bytes()));
    }
    let end = tokio::time::Instant::now() + timeout(call)?;
    let ending = api.hubs.ending();
    let stream = futures_util::stream::unfold(first, move |first| {
        let ending = ending.clone();
        async move {
            if let Some(line) = first {
                return Some((line, None));
            }
            tokio::select! {
                () = tokio::time::sleep_until(end) => {}
                () = ending.cancelled() => {}
            }
            None
        }
    });
    Ok(Reply::stream(Body::Stream(Box::pin(stream))))
}
