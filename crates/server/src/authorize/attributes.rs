//! What a request wants to do, as rules speak of it: a verb on a resource, or on a path.

use http::Method;
use kennel_core::selector::FieldSelector;

use crate::names;
use crate::request::path::Route;
use crate::verbs;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attributes<'a> {
    /// Something about objects.
    Resource(ResourceAttributes<'a>),
    /// Anything else: discovery, health, metrics.
    Path {
        /// The method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// A verb on objects. Empty means absent: no namespace is all of them, no name is all objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceAttributes<'a> {
    /// The verb.
    pub(crate) verb: &'a str,
    /// The API group; empty for the core group.
    pub(crate) group: &'a str,
    /// The API version.
    pub(crate) version: &'a str,
    /// The resource's plural name.
    pub(crate) resource: &'a str,
    /// The subresource.
    pub(crate) subresource: &'a str,
    /// The namespace.
    pub(crate) namespace: &'a str,
    /// The object's name. A list or a watch of one name has it too.
    pub(crate) name: &'a str,
    /// What a list, a watch or a deletion of many is narrowed to.
    pub(crate) fields: Option<&'a FieldSelector>,
}

impl<'a> Attributes<'a> {
    /// What a request for this route wants. `None`: the path names nothing that is served.
    pub(crate) fn of(
        method: &Method,
        route: Option<&'a Route>,
        path: &'a str,
        watching: bool,
        fields: Option<&'a FieldSelector>,
    ) -> Self {
        let resource = match route {
            Some(Route::Objects(place)) => ResourceAttributes {
                group: place.row.group,
                version: place.row.version,
                resource: place.row.plural,
                subresource: place.subresource.as_deref().unwrap_or_default(),
                namespace: place.namespace.as_deref().unwrap_or_default(),
                name: place.name.as_deref().unwrap_or_default(),
                ..ResourceAttributes::default()
            },
            Some(Route::Empty(collection, name)) => ResourceAttributes {
                group: collection.group,
                version: collection.version,
                resource: collection.plural,
                name: name.as_deref().unwrap_or_default(),
                ..ResourceAttributes::default()
            },
            Some(Route::Posted(row, namespace)) => ResourceAttributes {
                group: row.group,
                version: row.version,
                resource: row.plural,
                namespace: namespace.as_deref().unwrap_or_default(),
                ..ResourceAttributes::default()
            },
            _ => {
                let verb = path_verb(method);
                return Self::Path { verb, path };
            }
        };
        let verb = route.map_or("", |route| verbs::verb(method, route, watching));
        let mut resource = ResourceAttributes { verb, ..resource };
        if matches!(verb, "list" | "watch" | "deletecollection") {
            resource.fields = fields;
        }
        if matches!(verb, "list" | "watch") && resource.name.is_empty() {
            let one = fields.and_then(|fields| fields.required("metadata.name"));
            let one = one.filter(|name| names::path_segment_name(name).is_empty());
            resource.name = one.unwrap_or_default();
        }
        Self::Resource(resource)
    }
}

fn path_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}
