//! The attributes of a request that authorisation decides on: a verb on a resource, or on a path.

use http::Method;
use kennel_core::selector::FieldSelector;
use kennel_types::Verb;

use crate::names;
use crate::request::path::Route;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attributes<'a> {
    /// A request of the resource API.
    Resource(ResourceAttributes<'a>),
    /// Any other request: discovery, health, metrics.
    Path {
        /// The method in lower case.
        verb: Verb<'a>,
        /// The path.
        path: &'a str,
    },
}

/// A verb on objects. Empty means absent: no namespace is all of them, no name is all objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceAttributes<'a> {
    /// The verb.
    pub(crate) verb: Verb<'a>,
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
    /// The field selector of a list, a watch or a deletecollection.
    pub(crate) fields: Option<&'a FieldSelector>,
}

impl<'a> Attributes<'a> {
    /// The attributes of a request. `route` is `None` for a path that is not served.
    pub(crate) fn of(
        method: &Method,
        route: Option<&'a Route>,
        path: &'a str,
        watching: bool,
        fields: Option<&'a FieldSelector>,
    ) -> Self {
        let Some((route, resource)) = route.and_then(|route| Some((route, resource(route)?)))
        else {
            let verb = path_verb(method);
            return Self::Path { verb, path };
        };
        let verb = route.verb(method, watching);
        let mut resource = ResourceAttributes { verb, ..resource }.in_own_namespace();
        if matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
            resource.fields = fields;
        }
        if matches!(verb, Verb::List | Verb::Watch) {
            let one = fields.and_then(|fields| fields.required("metadata.name"));
            let one = one.filter(|name| names::path_segment_name(name).is_empty());
            resource.name = one.unwrap_or_default();
        }
        Self::Resource(resource)
    }

    /// Empty for cluster-wide requests and for paths.
    pub(crate) fn namespace(&self) -> &'a str {
        match self {
            Self::Resource(asked) => asked.namespace,
            Self::Path { .. } => "",
        }
    }

    /// Further attributes that must be allowed: `exec`, `attach` and `portforward` over WebSocket begin with
    /// a GET, and need the verb `create` as well.
    pub(crate) fn additional(&self) -> Option<Self> {
        let Self::Resource(asked) = self else {
            return None;
        };
        let streams = matches!(asked.subresource, "exec" | "attach" | "portforward");
        let pods = asked.group.is_empty() && asked.resource == "pods";
        let create = ResourceAttributes {
            verb: Verb::Create,
            ..*asked
        };
        (pods && streams && asked.verb == Verb::Get).then_some(Self::Resource(create))
    }
}

impl ResourceAttributes<'_> {
    /// A namespace counts as inside itself, so that a role in it can allow reading it.
    fn in_own_namespace(mut self) -> Self {
        if self.resource == "namespaces" && self.namespace.is_empty() {
            self.namespace = self.name;
        }
        self
    }
}

/// The attributes of a route, if it is one of the resource API.
fn resource(route: &Route) -> Option<ResourceAttributes<'_>> {
    Some(match route {
        Route::Objects(place) => ResourceAttributes {
            group: place.row.group,
            version: place.row.version,
            resource: place.row.plural,
            subresource: place.subresource.as_deref().unwrap_or_default(),
            namespace: place.namespace.as_deref().unwrap_or_default(),
            name: place.name.as_deref().unwrap_or_default(),
            ..ResourceAttributes::default()
        },
        Route::Empty(vacant) => ResourceAttributes {
            group: vacant.collection.group,
            version: vacant.collection.version,
            resource: vacant.collection.plural,
            namespace: vacant.namespace.as_deref().unwrap_or_default(),
            name: vacant.name.as_deref().unwrap_or_default(),
            ..ResourceAttributes::default()
        },
        Route::Measured(place) => ResourceAttributes {
            group: place.row.group,
            version: place.row.version,
            resource: place.row.plural,
            namespace: place.namespace.as_deref().unwrap_or_default(),
            name: place.name.as_deref().unwrap_or_default(),
            ..ResourceAttributes::default()
        },
        Route::CreateOnly(row, namespace) => ResourceAttributes {
            group: row.group,
            version: row.version,
            resource: row.plural,
            namespace: namespace.as_deref().unwrap_or_default(),
            ..ResourceAttributes::default()
        },
        Route::Unserved(unserved) => ResourceAttributes {
            group: &unserved.group,
            version: &unserved.version,
            resource: &unserved.resource,
            subresource: &unserved.subresource,
            namespace: &unserved.namespace,
            name: &unserved.name,
            ..ResourceAttributes::default()
        },
        _ => return None,
    })
}

fn path_verb(method: &Method) -> Verb<'static> {
    match *method {
        Method::GET => Verb::Get,
        Method::HEAD => Verb::Head,
        Method::POST => Verb::Post,
        Method::PUT => Verb::Put,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        Method::OPTIONS => Verb::Options,
        _ => Verb::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::path;
    use crate::request::query::Query;

    fn check(request: &str, expected: &str) {
        let (method, uri) = request.split_once(' ').unwrap();
        let method = method.parse().unwrap();
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let (route, query) = (path::parse(path), Query::parse(Some(query)));
        let watching = query.flag("watch").unwrap();
        let fields = query.get("fieldSelector").map(FieldSelector::parse);
        let fields = fields.and_then(Result::ok);
        let asked = Attributes::of(&method, route.as_ref(), path, watching, fields.as_ref());
        let shown = match asked {
            Attributes::Path { verb, path } => format!("{verb} {path}"),
            Attributes::Resource(r) => format!(
                "{} {}.{}/{} ns={} name={} sub={}",
                r.verb, r.resource, r.group, r.version, r.namespace, r.name, r.subresource
            ),
        };
        assert_eq!(shown, expected, "{request}");
    }

    #[test]
    fn verbs_and_resources_are_upstreams() {
        for (request, expected) in [
            ("GET /api/v1/pods", "list pods./v1 ns= name= sub="),
            ("GET /api/v1/pods?watch=1", "watch pods./v1 ns= name= sub="),
            (
                "GET /api/v1/namespaces/a/pods/b/log?watch=1",
                "get pods./v1 ns=a name=b sub=log",
            ),
            (
                "DELETE /api/v1/namespaces/a/pods",
                "deletecollection pods./v1 ns=a name= sub=",
            ),
            (
                "PATCH /apis/apps/v1/namespaces/a/daemonsets/d/status",
                "patch daemonsets.apps/v1 ns=a name=d sub=status",
            ),
            (
                "POST /apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews",
                "create localsubjectaccessreviews.authorization.k8s.io/v1 ns=a name= sub=",
            ),
            // A namespace counts as inside itself.
            (
                "GET /api/v1/namespaces/a",
                "get namespaces./v1 ns=a name=a sub=",
            ),
            (
                "PUT /api/v1/namespaces/a/finalize",
                "update namespaces./v1 ns=a name=a sub=finalize",
            ),
            // Collections that are always empty, and resources that are not served.
            (
                "GET /apis/apps/v1/namespaces/a/deployments",
                "list deployments.apps/v1 ns=a name= sub=",
            ),
            (
                "PUT /apis/example.com/v1/namespaces/a/cats/tom/whiskers",
                "update cats.example.com/v1 ns=a name=tom sub=whiskers",
            ),
            // Paths.
            ("GET /api/v1", "get /api/v1"),
            ("HEAD /healthz", "head /healthz"),
            ("POST /metrics", "post /metrics"),
            (
                "GET /api/v1/namespaces//pods",
                "get /api/v1/namespaces//pods",
            ),
        ] {
            check(request, expected);
        }
    }

    #[test]
    fn a_selected_name_counts_for_lists_and_watches_only() {
        let uri = "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dx";
        check(&format!("GET {uri}"), "list secrets./v1 ns=a name=x sub=");
        check(
            &format!("GET {uri}&watch=true"),
            "watch secrets./v1 ns=a name=x sub=",
        );
        check(
            &format!("DELETE {uri}"),
            "deletecollection secrets./v1 ns=a name= sub=",
        );
        check(
            "GET /api/v1/secrets?fieldSelector=metadata.name!%3Dx",
            "list secrets./v1 ns= name= sub=",
        );
        check(
            "GET /api/v1/secrets?fieldSelector=metadata.name%3Da%252Fb",
            "list secrets./v1 ns= name= sub=",
        );
    }

    #[test]
    fn streams_must_be_allowed_to_create() {
        let asked = |verb, subresource| {
            Attributes::Resource(ResourceAttributes {
                verb,
                resource: "pods",
                subresource,
                ..ResourceAttributes::default()
            })
        };
        assert_eq!(
            asked(Verb::Get, "exec").additional(),
            Some(asked(Verb::Create, "exec"))
        );
        assert_eq!(asked(Verb::Create, "exec").additional(), None);
        assert_eq!(asked(Verb::Get, "log").additional(), None);
    }
}
