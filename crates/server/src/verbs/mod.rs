//! The verbs of the API.
//!
//! ```text
//!  create ─┐
//!  update ─┼─▶ write: decode ─▶ default ─▶ prepare ─▶ admit ─▶ validate ─▶ store
//!  patch  ─┘
//!  read: get, list        watch: subscribe, history, live     delete: grace period, finalizers, removal
//! ```
//!
//! Every verb works on one [`Call`]: a request whose body has been read. [`connect`] forwards requests to the
//! agents of nodes.

mod apply;
mod call;
pub mod connect;
mod create;
mod decode;
mod delete;
mod managed_fields;
mod measured;
mod meta;
mod options;
mod patch;
mod read;
mod review;
mod subresource;
mod type_meta;
mod update;
mod watching;

pub use call::Call;
pub(crate) use measured::serve as measured;

use http::header;
use kennel_types::Verb;

use crate::admit::Notes;
use crate::api::Api;
use crate::names;
use crate::object::{Document, Stored};
use crate::projection::Projection;
use crate::registry::{self, CreateOnly, EmptyCollection, PostHandler, Resource, Subresource};
use crate::request::path::Place;
use crate::request::{User, accept};
use crate::response::Reply;
use crate::status::{ApiError, Result};

/// The manager of fields that the server writes itself.
const SERVER_MANAGER: &str = "kennel-server";

/// Serves a request for objects of a resource.
pub async fn objects(api: &Api, call: &Call, place: &Place, verb: Verb<'_>) -> Result<Reply> {
    let row = place.row;
    check_name(place)?;
    if let Some(subresource) = &place.subresource {
        let served = served(row, subresource, verb)?;
        return Box::pin(subresource::serve(api, call, place, served, verb)).await;
    }
    if !row.verbs.contains(&verb) || !fits(place, verb) {
        return Err(not_allowed(row, verb));
    }
    // Boxed, so that a request needs the memory of its own verb and not that of the largest one.
    match verb {
        Verb::Get => read::get(api, call, place).await,
        Verb::List => read::list(api, call, place).await,
        Verb::Watch => watching::watch(api, call, place).await,
        Verb::Create => Box::pin(create::create(api, call, place)).await,
        Verb::Update => Box::pin(update::update(api, call, place)).await,
        Verb::Patch => Box::pin(patch::patch(api, call, place)).await,
        Verb::Delete => Box::pin(delete::delete(api, call, place)).await,
        _ => Box::pin(delete::delete_collection(api, call, place)).await,
    }
}

/// 405. Says where objects come from that are not stored.
fn not_allowed(row: &Resource, verb: Verb<'_>) -> ApiError {
    let origin = row.projection.map(Projection::origin);
    ApiError::method_not_allowed(row.group, row.plural, verb).adding(origin)
}

/// The subresource of this name, if it serves the verb.
fn served(
    row: &'static Resource,
    subresource: &str,
    verb: Verb<'_>,
) -> Result<&'static Subresource> {
    let served = row
        .subresource(subresource)
        .ok_or_else(ApiError::no_such_resource)?;
    if served.verbs.contains(&verb) {
        return Ok(served);
    }
    let resource = format!("{}/{subresource}", row.plural);
    Err(ApiError::method_not_allowed(row.group, &resource, verb))
}

/// Answers a POST to a resource that stores nothing, and that no table shows.
pub async fn create_only(
    api: &Api,
    call: &Call,
    row: &'static CreateOnly,
    namespace: Option<&str>,
) -> Result<Reply> {
    accept::accepts_object(call.header(header::ACCEPT))?;
    match row.handler {
        PostHandler::Binding => {
            let namespace = namespace.unwrap_or_default();
            subresource::binding::create_by_body(api, call, namespace).await
        }
        _ => review::answer(api, call, row, namespace),
    }
}

/// Creates an object for the server itself.
pub(crate) async fn insert(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    document: Document,
) -> Result<()> {
    let new = create::New {
        author: managed_fields::Author {
            user,
            manager: SERVER_MANAGER,
        },
        row,
        namespace,
        document,
        managers: None,
    };
    create::insert(api, new, false, &mut Notes::default())
        .await
        .map(drop)
}

/// Replaces an object for the server itself, whatever its current version.
pub(crate) async fn overwrite(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    name: &str,
    tree: serde_json::Value,
) -> Result<()> {
    amend(api, user, row, namespace, name, |old| *old = tree.clone()).await
}

/// Changes an object for the server itself. Calls `change` again if another write comes first.
pub(crate) async fn amend(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    name: &str,
    change: impl Fn(&mut serde_json::Value),
) -> Result<()> {
    let at = At {
        row,
        namespace,
        name,
    };
    let part = registry::Part::Main;
    let whole = update::Change {
        at,
        by: managed_fields::Author {
            user,
            manager: SERVER_MANAGER,
        },
        part,
        dry_run: false,
    };
    let edit = |old: &Document| {
        let mut document = old.clone();
        change(&mut document.tree);
        Ok(update::Edit::of(document))
    };
    update::modify(api, whole, edit).await.map(drop)
}

/// Deletes an object for the server itself.
pub(crate) async fn remove(
    api: &Api,
    user: &User,
    row: &'static Resource,
    namespace: Option<&str>,
    name: &str,
) -> Result<()> {
    let at = At {
        row,
        namespace,
        name,
    };
    let options = options::DeleteOptions::default();
    let deleted = delete::delete_object(api, user, at, &options).await;
    deleted.map(drop)
}

/// Serves a collection that is always empty.
pub async fn empty(
    api: &Api,
    call: &Call,
    collection: &'static EmptyCollection,
    name: Option<&str>,
    verb: Verb<'_>,
) -> Result<Reply> {
    match (verb, name) {
        (Verb::List | Verb::DeleteCollection, None) => read::empty_list(api, call, collection),
        (Verb::Watch, None) => watching::empty_watch(api, call, collection).await,
        (Verb::Get, Some(name)) => Err(read::empty_not_found(collection, name)),
        _ => {
            let EmptyCollection { group, plural, .. } = *collection;
            let instead = registry::instead(group, collection.version, plural);
            Err(ApiError::method_not_allowed(group, plural, verb).adding(instead))
        }
    }
}

/// Refuses a name that is not one segment of a path.
fn check_name(place: &Place) -> Result<()> {
    check_segment(place.name.as_deref().unwrap_or_default())
}

/// An empty name is that of a collection.
fn check_segment(name: &str) -> Result<()> {
    let mistakes = names::path_segment_name(name);
    if mistakes.is_empty() {
        return Ok(());
    }
    let why = mistakes.join(";");
    Err(ApiError::bad_request(format!(
        "Name parameter invalid: {name:?}: {why}"
    )))
}

/// Whether the path fits the verb: create and deletecollection need one collection, update and patch one
/// object.
fn fits(place: &Place, verb: Verb<'_>) -> bool {
    let in_its_scope = place.row.namespaced() == place.namespace.is_some();
    match verb {
        Verb::Create | Verb::DeleteCollection => place.name.is_none() && in_its_scope,
        Verb::Update | Verb::Patch => place.name.is_some(),
        _ => true,
    }
}

/// The name in the path. The router calls verbs on one object only for paths with a name.
fn name_in(place: &Place) -> Result<&str> {
    place.name.as_deref().ok_or_else(ApiError::no_such_resource)
}

/// The row, namespace and name of an object.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) row: &'static Resource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl<'a> At<'a> {
    fn of(place: &'a Place) -> Result<Self> {
        let name = name_in(place)?;
        Ok(Self {
            row: place.row,
            namespace: place.namespace.as_deref(),
            name,
        })
    }

    pub(crate) fn key(&self) -> String {
        crate::object::key(self.row, self.namespace, self.name)
    }

    fn stored(&self, api: &Api) -> Result<Stored> {
        api.stored(self.row, self.namespace, self.name)
    }
}
