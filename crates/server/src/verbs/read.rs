//! Reads: get and list, from memory, once it is confirmed to be up to date where the request asks for that. If memory does not catch
//! up in time, the store reads what the request is about from its engine.

use std::time::Duration;

use kennel_store::{Page, RangeAtError};
use serde_json::{Map, Value, json};

use super::At;
use super::call::Call;
use crate::api::Api;
use crate::continuation::Continuation;
use crate::field::{FieldError, Path};
use crate::object::{self, Head, Stored};
use crate::present::ListBody;
use crate::projection::Projector;
use crate::registry::EmptyCollection;
use crate::request::accept::Form;
use crate::request::path::Place;
use crate::request::query::{VersionMatch, list_option};
use crate::response::{Body, Reply};
use crate::status::{ApiError, Result};
use crate::table;
use crate::watch::Filter;

/// How long a read waits for a future resourceVersion.
const FUTURE_WAIT: Duration = Duration::from_secs(3);

/// A list of no more objects is read before the history drops its revision, so that it needs no snapshot: a page of kubectl's.
const SMALL_LIST: usize = 500;

pub(super) async fn get(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let at = At::of(place)?;
    let presenter = call.presenter(at.row)?;
    let projector = api.projector(at.row);
    let prefix = projector
        .as_ref()
        .map_or_else(|| at.key(), Projector::prefix);
    let newest = match call.query.resource_version()? {
        Some(asked) => {
            wait_for(api, asked).await?;
            None
        }
        None => newest(api, &prefix).await?,
    };
    let stored = match (projector, newest) {
        (Some(projector), newest) => {
            let sources = newest.unwrap_or_else(|| api.store.range(&prefix, None, None));
            projector.find(&sources.records, at.name)?
        }
        (None, Some(newest)) => of_page(api, &at, newest)?,
        (None, None) => at.stored(api)?,
    };
    Ok(Reply::json(200, presenter.one(&stored, stored.modified)?))
}

/// The object, of a page that the engine has read.
fn of_page(api: &Api, at: &At<'_>, page: Page<Head>) -> Result<Stored> {
    let key = at.key();
    let mut records = page.records.into_iter();
    if let Some(found) = records.find(|record| *record.key == *key) {
        return Ok(found);
    }
    api.check_damaged(at.row, at.namespace, at.name)?;
    Err(ApiError::not_found(at.row, at.name))
}

pub(super) async fn list(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let row = place.row;
    let presenter = call.presenter(row)?;
    let filter = Filter::new(row, place.namespace.as_deref(), &call.query)?;
    let request = ListRequest::of(call)?;
    let newest = match request.not_older_than.or(request.exact) {
        Some(version) => {
            wait_for(api, version).await?;
            None
        }
        None if request.is_newest() => newest(api, &source_prefix(api, place)).await?,
        None => None,
    };
    let page = request.page(api, place, &filter, newest)?;
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), page.revision.to_string().into());
    if page.remaining > 0 {
        let last = page
            .records
            .last()
            .map(|r| r.key.to_string())
            .unwrap_or_default();
        let token = Continuation {
            revision: page.revision,
            after: last,
        }
        .encode();
        metadata.insert("continue".into(), token.into());
        if !filter.selects() {
            metadata.insert("remainingItemCount".into(), page.remaining.into());
        }
    }
    match presenter.list(&metadata, page.records)? {
        ListBody::Whole(bytes) => Ok(Reply::json(200, bytes)),
        ListBody::Pieces(head, items) => {
            let pieces = Box::new(presenter.pieces(head, items));
            Ok(Reply::stream(Body::Pieces(pieces)))
        }
    }
}

/// The options of a list besides its selectors.
struct ListRequest {
    limit: Option<usize>,
    version: Option<u64>,
    exact: Option<u64>,
    not_older_than: Option<u64>,
    continuation: Option<Continuation>,
}

impl ListRequest {
    fn of(call: &Call) -> Result<Self> {
        let query = &call.query;
        if query.get("sendInitialEvents").is_some() {
            let path = Path::new("sendInitialEvents");
            let words = "sendInitialEvents is forbidden for list";
            return Err(list_option(FieldError::forbidden(&path, words)));
        }
        let limit = query.number("limit")?.filter(|n| *n > 0);
        let limit = limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let continuation = query
            .get("continue")
            .map(Continuation::decode)
            .transpose()?;
        let version = query.resource_version()?;
        let matching = query.version_match()?;
        if continuation.is_some() && version.is_some_and(|v| v != 0) {
            let words = "specifying resource version is not allowed when using continue";
            return Err(ApiError::bad_request(words));
        }
        check_match(version, matching, continuation.is_some())?;
        let exact = matching == Some(VersionMatch::Exact);
        Ok(Self {
            // As upstream, a list at resourceVersion 0 ignores the limit.
            version,
            limit: limit.filter(|_| version != Some(0) || continuation.is_some()),
            exact: version.filter(|_| exact),
            not_older_than: version.filter(|v| !exact && *v > 0),
            continuation,
        })
    }

    /// Whether the list must show every write that was answered before it was asked for.
    fn is_newest(&self) -> bool {
        self.version.is_none() && self.continuation.is_none()
    }

    /// `newest` is what the engine itself has, if memory does not show that.
    fn page(
        &self,
        api: &Api,
        place: &Place,
        filter: &Filter,
        newest: Option<Page<Head>>,
    ) -> Result<Page<Head>> {
        let whole = |prefix: &str| match newest {
            Some(newest) => Ok(newest),
            None => self.whole(api, prefix),
        };
        let own = object::prefix(place.row, place.namespace.as_deref());
        let after = self.continuation.as_ref().map(|token| token.after.as_str());
        if after.is_some_and(|after| !after.starts_with(&own)) {
            return Err(ApiError::bad_request(
                "invalid continue token: it belongs to another list",
            ));
        }
        let limit = self.limit.unwrap_or(usize::MAX);
        if let Some(projector) = api.projector(place.row) {
            let mut page = whole(&projector.prefix())?;
            projector.project(&mut page, after);
            page.records.retain(|record| filter.matches(&record.head));
            page.remaining = page.records.len().saturating_sub(limit);
            page.records.truncate(limit);
            return Ok(page);
        }
        if let Some(token) = &self.continuation
            && let Some(snapshot) = api.snapshots.get(&own, token.revision)
        {
            return Ok(snapshot.page(after, filter, limit));
        }
        let mut whole = whole(&own)?;
        let matching = if filter.selects() {
            let records = whole.records.iter();
            records.filter(|r| filter.matches(&r.head)).count()
        } else {
            whole.records.len()
        };
        if after.is_some() || matching > limit.min(SMALL_LIST) {
            let snapshot = api.snapshots.keep(own, whole.revision, whole.records);
            return Ok(snapshot.page(after, filter, limit));
        }
        whole.records.retain(|record| filter.matches(&record.head));
        Ok(whole)
    }

    /// All records below a prefix, at the revision that the list asks for.
    fn whole(&self, api: &Api, prefix: &str) -> Result<Page<Head>> {
        let at = |revision| api.store.range_at(prefix, revision, None, None);
        match (&self.continuation, self.exact) {
            (Some(token), _) => at(token.revision).map_err(|error| match error {
                RangeAtError::Compacted(_) => expired_token(api, token),
                RangeAtError::Future { .. } => {
                    ApiError::bad_request("invalid continue token: it is from the future")
                }
            }),
            (None, Some(version)) => at(version).map_err(|error| match error {
                RangeAtError::Compacted(c) => too_old(version, c.oldest),
                RangeAtError::Future { .. } => {
                    ApiError::revision_too_large(version, api.store.revision())
                }
            }),
            (None, None) => Ok(api.store.range(prefix, None, None)),
        }
    }
}

fn check_match(
    version: Option<u64>,
    matching: Option<VersionMatch>,
    continued: bool,
) -> Result<()> {
    let path = Path::new("resourceVersionMatch");
    let forbidden = |words: &str| Err(list_option(FieldError::forbidden(&path, words)));
    match (matching, version) {
        (None, _) => Ok(()),
        (Some(_), _) if continued => {
            forbidden("resourceVersionMatch is forbidden when continue is provided")
        }
        (Some(_), None) => {
            forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        (Some(VersionMatch::Exact), Some(0)) => {
            forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        _ => Ok(()),
    }
}

/// The current objects of a collection that match a filter.
pub(super) fn page(api: &Api, place: &Place, filter: &Filter) -> Page<Head> {
    let mut page = api.store.range(&source_prefix(api, place), None, None);
    if let Some(projector) = api.projector(place.row) {
        projector.project(&mut page, None);
    }
    page.records.retain(|record| filter.matches(&record.head));
    page
}

/// The prefix of the keys that a collection is made of.
fn source_prefix(api: &Api, place: &Place) -> String {
    api.projector(place.row).map_or_else(
        || object::prefix(place.row, place.namespace.as_deref()),
        |projector| projector.prefix(),
    )
}

/// Waits until memory shows all that any process has written; else answers the keys with this prefix as the engine has them.
async fn newest(api: &Api, prefix: &str) -> Result<Option<Page<Head>>> {
    let newest = api.store.newest(prefix).await;
    newest.map_err(|unconfirmed| ApiError::unavailable(unconfirmed.to_string()))
}

/// Waits until memory shows all that any process has written.
pub(super) async fn confirm(api: &Api) -> Result<()> {
    let confirmed = api.store.confirm().await;
    confirmed
        .map(drop)
        .map_err(|unconfirmed| ApiError::unavailable(unconfirmed.to_string()))
}

/// Waits until the store has reached a revision.
pub(super) async fn wait_for(api: &Api, version: u64) -> Result<()> {
    if api.store.revision() >= version {
        return Ok(());
    }
    let is_reached = || api.store.revision() >= version;
    // The first is woken by objects alone, which is all there is on SQLite; the second also by other keys of etcd.
    tokio::select! {
        () = api.hubs.until(is_reached) => {}
        () = api.store.reached(version, FUTURE_WAIT) => {}
    }
    if is_reached() {
        return Ok(());
    }
    Err(ApiError::revision_too_large(version, api.store.revision()))
}

/// Waits until memory has a revision that a watch starts after; 410 if the engine itself has not. A server that is a little behind
/// etcd is normal.
pub(super) async fn wait_for_start(api: &Api, version: u64) -> Result<()> {
    if api.store.revision() < version {
        confirm(api).await?;
    }
    if api.store.revision() < version {
        return Err(too_new(api, version));
    }
    Ok(())
}

/// 410 for a revision that is older than the history.
pub(super) fn too_old(version: u64, oldest: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {version} ({oldest})"))
}

/// 410 for a revision that this store has not reached.
fn too_new(api: &Api, version: u64) -> ApiError {
    let current = api.store.revision();
    ApiError::expired(format!(
        "too large resource version: {version}, current: {current}; list again"
    ))
}

fn expired_token(api: &Api, token: &Continuation) -> ApiError {
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted between \
         the time the first chunk was returned and now may show up in the list.",
    );
    let next = Continuation {
        revision: api.store.revision(),
        after: token.after.clone(),
    };
    error.continue_token = Some(next.encode());
    error
}

/// The list of a collection that is always empty.
pub(super) fn empty_list(api: &Api, call: &Call, collection: &EmptyCollection) -> Result<Reply> {
    let metadata = json!({"resourceVersion": api.store.revision().to_string()});
    let value: Value = match call.form()? {
        Form::Table(version) => {
            let table = table::render_empty(collection, version, &metadata);
            return Ok(Reply::json(200, table));
        }
        Form::Object => json!({
            "kind": format!("{}List", collection.kind),
            "apiVersion": collection.api_version(), "metadata": metadata, "items": [],
        }),
        Form::Metadata => json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata, "items": [],
        }),
    };
    Ok(Reply::value(200, &value))
}

pub(super) fn empty_not_found(collection: &EmptyCollection, name: &str) -> ApiError {
    ApiError::not_found_in(collection, name)
}
