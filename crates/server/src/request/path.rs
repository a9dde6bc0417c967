//! Parses the paths of the API.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use http::Method;
use kennel_core::health::Endpoint;
use kennel_types::Verb;
use percent_encoding::percent_decode_str;

use crate::registry::{
    self, Connect, CreateOnly, EmptyCollection, Handler, Measured, Resource, Scope,
};

/// What a path names.
#[derive(Debug, Clone)]
pub enum Route {
    /// `/healthz`, `/livez`, `/readyz`, and one of their checks.
    Health(Endpoint, String),
    /// `/version`
    Version,
    /// `/metrics`
    Metrics,
    /// `/.well-known/openid-configuration`: the issuer of service-account tokens.
    Issuer,
    /// `/openid/v1/jwks`: the keys that verify them.
    IssuerKeys,
    /// `/kennel.dev/certificates`, and the action in a path below it.
    Certificates(Option<CertificateAction>),
    /// `/`: the list of paths.
    Root,
    /// `/api` (true) and `/apis` (false).
    Groups(bool),
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1` and `/apis/<group>/<version>`
    GroupVersion(String, String),
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApiV3,
    /// `/openapi/v3/<group version path>`
    OpenApiV3Document(String, String),
    /// Objects of a resource.
    Objects(Place),
    /// A collection that is always empty, or (with a name) an object that is never there.
    Empty(Vacant),
    /// Objects of a measured resource.
    Measured(MeasuredPlace),
    /// A resource that serves POST alone, and the namespace in the path.
    CreateOnly(&'static CreateOnly, Option<String>),
    /// Objects of a resource that is not served, as far as the form of the path tells. Authorisation comes
    /// before the 404, so that a user without rights does not learn what is served.
    Unserved(Unserved),
}

/// What `kennel certs` can do with the server's certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateAction {
    Renew,
    RotateAuthority,
    RetireAuthorities,
    ReissueAdmin,
    Revoke,
}

impl CertificateAction {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "renew" => Some(Self::Renew),
            "rotate-ca" => Some(Self::RotateAuthority),
            "retire-ca" => Some(Self::RetireAuthorities),
            "reissue-admin" => Some(Self::ReissueAdmin),
            "revoke" => Some(Self::Revoke),
            _ => None,
        }
    }
}

impl Route {
    /// The verb of a request for this path, as authorisation and discovery name it. `watching`: the
    /// query asks for a watch.
    pub fn verb(&self, method: &Method, watching: bool) -> Verb<'static> {
        let named = match self {
            Self::Objects(place) => place.name.is_some(),
            Self::Empty(vacant) => vacant.name.is_some(),
            Self::Measured(place) => place.name.is_some(),
            Self::Unserved(unserved) => !unserved.name.is_empty(),
            Self::CreateOnly(..) => false,
            _ => true,
        };
        match *method {
            // Upstream ignores `watch` beside a name.
            Method::GET | Method::HEAD if named => Verb::Get,
            Method::GET | Method::HEAD if watching => Verb::Watch,
            Method::GET | Method::HEAD => Verb::List,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if named => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ => Verb::default(),
        }
    }

    /// Whether the answer depends on stored objects.
    pub(crate) fn is_of_objects(&self) -> bool {
        matches!(
            self,
            Self::Objects(_) | Self::Measured(_) | Self::CreateOnly(..) | Self::Certificates(_)
        )
    }

    /// The kubelet API or pod endpoint that the server forwards the request to, if it does.
    pub(crate) fn connect(&self) -> Option<Connect> {
        let Self::Objects(place) = self else {
            return None;
        };
        let subresource = place.row.subresource(place.subresource.as_deref()?)?;
        match subresource.handler {
            Handler::Connect(connect) => Some(connect),
            _ => None,
        }
    }
}

/// The segments of which one is in the path of every sensitive read: sensitive resources, and subresources that are forwarded.
static SENSITIVE_SEGMENTS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let resources = registry::RESOURCES.iter();
    let sensitive = resources
        .clone()
        .filter(|row| row.sensitive)
        .map(|row| row.plural);
    let forwarded = resources
        .flat_map(|row| row.subresources)
        .filter(|subresource| matches!(subresource.handler, Handler::Connect(_)))
        .map(|subresource| subresource.name);
    sensitive.chain(forwarded).collect()
});

/// Whether a GET of this path shows what only few may see: objects of sensitive resources, logs, and what `exec`, `attach`,
/// `portforward` and proxies reach.
pub(crate) fn is_sensitive(path: &str) -> bool {
    // Rules out nearly all paths without parsing them. An encoded segment may stand for any.
    let mut segments = path.split('/');
    let may_be = segments.any(|s| s.contains('%') || SENSITIVE_SEGMENTS.contains(s));
    if !may_be {
        return false;
    }
    let route = parse(path);
    matches!(&route, Some(Route::Objects(place)) if place.row.sensitive)
        || route.is_some_and(|route| route.connect().is_some())
}

/// A place in a collection that is always empty.
#[derive(Debug, Clone)]
pub struct Vacant {
    pub collection: &'static EmptyCollection,
    /// The namespace, if the path names one.
    pub namespace: Option<String>,
    /// The object's name, if the path names one.
    pub name: Option<String>,
}

/// An object or a collection of a measured resource.
#[derive(Debug, Clone)]
pub struct MeasuredPlace {
    pub row: &'static Measured,
    /// The namespace, if the path names one.
    pub namespace: Option<String>,
    /// The object's name, if the path names one.
    pub name: Option<String>,
}

/// A path of the form of a resource. Absent parts are empty.
#[derive(Debug, Clone, Default)]
pub struct Unserved {
    pub group: String,
    pub version: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

/// An object, a subresource or a collection of a served resource.
#[derive(Debug, Clone)]
pub struct Place {
    pub row: &'static Resource,
    /// The namespace, if the path names one.
    pub namespace: Option<String>,
    /// The object's name, if the path names one.
    pub name: Option<String>,
    /// The subresource, if the path names one.
    pub subresource: Option<String>,
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.qualified())
    }
}

/// Paths with more segments are not served.
const SEGMENTS_MAX: usize = 12;

/// Splits a proxy path behind `proxy`. The rest is for the backend.
pub fn split_proxied(path: &str) -> Option<(&str, &str)> {
    let below = path.strip_prefix("/api/v1/")?;
    // `nodes/NAME/proxy` or `namespaces/NAMESPACE/pods/NAME/proxy`.
    let before = if below.starts_with("namespaces/") {
        4
    } else {
        2
    };
    let segments: Vec<&str> = below.splitn(before + 2, '/').collect();
    if segments.get(before) != Some(&"proxy") {
        return None;
    }
    let rest = segments.get(before + 1).map_or(0, |rest| rest.len() + 1);
    Some(path.split_at(path.len() - rest))
}

/// Parses a path. `None`: nothing is served there.
pub fn parse(path: &str) -> Option<Route> {
    let path = split_proxied(path).map_or(path, |(ours, _)| ours);
    let mut segments = Vec::new();
    let path = path.trim_matches('/');
    for segment in path.split('/').filter(|_| !path.is_empty()) {
        // An empty segment must not shift the segments behind it.
        if segment.is_empty() || segments.len() == SEGMENTS_MAX {
            return None;
        }
        segments.push(percent_decode_str(segment).decode_utf8().ok()?.into_owned());
    }
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Some(Route::Root),
        [endpoint @ ("healthz" | "livez" | "readyz"), check @ ..] if check.len() <= 1 => {
            let check = check.first().copied().unwrap_or_default();
            Some(Route::Health(Endpoint::parse(endpoint)?, check.to_owned()))
        }
        ["version"] => Some(Route::Version),
        ["metrics"] => Some(Route::Metrics),
        [".well-known", "openid-configuration"] => Some(Route::Issuer),
        ["openid", "v1", "jwks"] => Some(Route::IssuerKeys),
        ["kennel.dev", "certificates"] => Some(Route::Certificates(None)),
        ["kennel.dev", "certificates", action] => {
            let action = CertificateAction::parse(action)?;
            Some(Route::Certificates(Some(action)))
        }
        ["openapi", "v2"] => Some(Route::OpenApiV2),
        ["openapi", "v3"] => Some(Route::OpenApiV3),
        ["openapi", "v3", "api", version] => Some(Route::OpenApiV3Document(
            String::new(),
            (*version).to_owned(),
        )),
        ["openapi", "v3", "apis", group, version] => Some(Route::OpenApiV3Document(
            (*group).to_owned(),
            (*version).to_owned(),
        )),
        ["api"] => Some(Route::Groups(true)),
        ["apis"] => Some(Route::Groups(false)),
        ["apis", group] => Some(Route::Group((*group).to_owned())),
        ["api", version] => Some(Route::GroupVersion(String::new(), (*version).to_owned())),
        ["apis", group, version] => Some(Route::GroupVersion(
            (*group).to_owned(),
            (*version).to_owned(),
        )),
        ["api", version, rest @ ..] => Some(below("", version, rest)),
        ["apis", group, version, rest @ ..] => Some(below(group, version, rest)),
        _ => None,
    }
}

/// Parses the path below a group version.
fn below(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = in_namespace(rest);
    let served = match rest {
        [plural, more @ ..] if more.len() <= 2 => place(group, version, plural, namespace, more),
        _ => None,
    };
    served.unwrap_or_else(|| Route::Unserved(unserved(group, version, namespace, rest)))
}

/// Splits the namespace off a path below a group version.
fn in_namespace<'a, 'b>(rest: &'b [&'a str]) -> (Option<&'a str>, &'b [&'a str]) {
    match rest {
        // `namespaces/x/status` is a subresource of the namespace, not a resource in it.
        ["namespaces", namespace, more @ ..]
            if more
                .first()
                .is_some_and(|plural| !matches!(*plural, "status" | "finalize")) =>
        {
            (Some(namespace), more)
        }
        _ => (None, rest),
    }
}

fn unserved(group: &str, version: &str, namespace: Option<&str>, rest: &[&str]) -> Unserved {
    let segment = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
    Unserved {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.unwrap_or_default().to_owned(),
        resource: segment(0),
        name: segment(1),
        subresource: segment(2),
    }
}

fn place(
    group: &str,
    version: &str,
    plural: &str,
    namespace: Option<&str>,
    more: &[&str],
) -> Option<Route> {
    let name = more.first().map(|s| (*s).to_owned());
    if let Some(row) = registry::find(group, version, plural) {
        if namespace.is_some() != row.namespaced() && (namespace.is_some() || name.is_some()) {
            return None;
        }
        return Some(Route::Objects(Place {
            row,
            namespace: namespace.map(str::to_owned),
            name,
            subresource: more.get(1).map(|s| (*s).to_owned()),
        }));
    }
    if let Some(row) = registry::find_create_only(group, version, plural) {
        let in_its_scope = (row.scope == Scope::Namespaced) == namespace.is_some();
        let namespace = namespace.map(str::to_owned);
        return (more.is_empty() && in_its_scope).then_some(Route::CreateOnly(row, namespace));
    }
    if let Some(row) = registry::find_measured(group, version, plural) {
        let is_namespaced = row.scope == Scope::Namespaced;
        let is_elsewhere =
            namespace.is_some() != is_namespaced && (namespace.is_some() || name.is_some());
        if is_elsewhere || more.len() > 1 {
            return None;
        }
        return Some(Route::Measured(MeasuredPlace {
            row,
            namespace: namespace.map(str::to_owned),
            name,
        }));
    }
    let collection = registry::find_empty(group, version, plural)?;
    let vacant = Vacant {
        collection,
        namespace: namespace.map(str::to_owned),
        name,
    };
    (more.len() < 2).then_some(Route::Empty(vacant))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let shown = match parse(path) {
            Some(Route::Objects(place)) => format!(
                "{} ns={} name={} sub={}",
                place.row.qualified(),
                place.namespace.as_deref().unwrap_or("-"),
                place.name.as_deref().unwrap_or("-"),
                place.subresource.as_deref().unwrap_or("-"),
            ),
            Some(Route::Empty(vacant)) => format!(
                "empty {} ns={} name={}",
                vacant.collection.plural,
                vacant.namespace.as_deref().unwrap_or("-"),
                vacant.name.as_deref().unwrap_or("-"),
            ),
            Some(Route::Unserved(u)) => format!(
                "unserved {}/{} ns={} {}/{}/{}",
                u.group, u.version, u.namespace, u.resource, u.name, u.subresource
            ),
            Some(Route::CreateOnly(row, namespace)) => {
                format!("create-only {} {namespace:?}", row.plural)
            }
            Some(Route::Measured(place)) => format!(
                "measured {} ns={} name={}",
                place.row.plural,
                place.namespace.as_deref().unwrap_or("-"),
                place.name.as_deref().unwrap_or("-"),
            ),
            other => format!("{other:?}"),
        };
        assert_eq!(shown, expected, "{path}");
    }

    #[test]
    fn sensitive_reads_are_recognised_however_they_are_encoded() {
        let check = |path: &str, expected| assert_eq!(is_sensitive(path), expected, "{path}");
        let pod = "/api/v1/namespaces/a/pods/p";
        for subresource in [
            "log",
            "exec",
            "attach",
            "portforward",
            "proxy",
            "proxy/a/b?c",
        ] {
            check(&format!("{pod}/{subresource}"), true);
        }
        check("/api/v1/secrets", true);
        check("/api/v1/namespaces/a/secrets/", true);
        check("/api/v1/namespaces/a/secrets/s", true);
        check("/api/v1/namespaces/a/secret%73/s", true);
        check("/api/v1/namespaces/a/pods/p/lo%67", true);
        check("/api/v1/nodes/n/proxy/logs", true);
        check(pod, false);
        check("/api/v1/namespaces/secrets/pods", false);
        check("/api/v1/namespaces/a/configmaps/log", false);
        check("/api/v1/namespaces/a/configmaps/%73", false);
        check("/apis/apps/v1/secrets", false);
    }

    #[test]
    fn names_collections_objects_and_subresources() {
        check("/api/v1/pods", "pods ns=- name=- sub=-");
        check(
            "/api/v1/namespaces/a/pods/b/status",
            "pods ns=a name=b sub=status",
        );
        check("/api/v1/namespaces/a", "namespaces ns=- name=a sub=-");
        check(
            "/api/v1/namespaces/a/finalize",
            "namespaces ns=- name=a sub=finalize",
        );
        check(
            "/apis/apps/v1/namespaces/a/daemonsets/b",
            "daemonsets.apps ns=a name=b sub=-",
        );
        check("/api/v1/nodes/n%2D1", "nodes ns=- name=n-1 sub=-");
        check("//api/v1/nodes/", "nodes ns=- name=- sub=-");
        check("/", "Some(Root)");
        check("", "Some(Root)");
        check("/apis/apps/v1/replicasets", "empty replicasets ns=- name=-");
        check(
            "/apis/apps/v1/namespaces/a/replicasets/r",
            "empty replicasets ns=a name=r",
        );
        check(
            "/api/v1/namespaces/a/bindings",
            "create-only bindings Some(\"a\")",
        );
    }

    #[test]
    fn measured_resources_are_collections_and_objects() {
        let root = "/apis/metrics.k8s.io/v1beta1";
        check(&format!("{root}/nodes"), "measured nodes ns=- name=-");
        check(&format!("{root}/nodes/n"), "measured nodes ns=- name=n");
        check(&format!("{root}/pods"), "measured pods ns=- name=-");
        let pods = format!("{root}/namespaces/a/pods");
        check(&pods, "measured pods ns=a name=-");
        check(&format!("{pods}/p"), "measured pods ns=a name=p");
        let unserved = "unserved metrics.k8s.io/v1beta1";
        check(
            &format!("{root}/pods/p"),
            &format!("{unserved} ns= pods/p/"),
        );
        check(
            &format!("{pods}/p/log"),
            &format!("{unserved} ns=a pods/p/log"),
        );
        check(
            &format!("{root}/namespaces/a/nodes"),
            &format!("{unserved} ns=a nodes//"),
        );
    }

    #[test]
    fn unserved_resources_are_parsed_by_their_form() {
        check("/api/v1/pods/p", "unserved /v1 ns= pods/p/");
        check("/api/v1/namespaces/a/nodes/n", "unserved /v1 ns=a nodes/n/");
        check(
            "/apis/apps/v2/namespaces/a/daemonsets/d/scale",
            "unserved apps/v2 ns=a daemonsets/d/scale",
        );
        check(
            "/api/v1/namespaces/a/pods/b/c/d",
            "unserved /v1 ns=a pods/b/c",
        );
        check("/api/v2/namespaces/a", "unserved /v2 ns= namespaces/a/");
    }

    #[test]
    fn the_path_behind_a_proxy_is_not_parsed() {
        let (node, pod) = ("/api/v1/nodes/n/proxy", "/api/v1/namespaces/a/pods/p/proxy");
        for rest in [
            "",
            "/",
            "/metrics",
            "//%ff/../x/y/z/1/2/3/4/5/6/7/8/9",
            "/proxy",
        ] {
            check(&format!("{node}{rest}"), "nodes ns=- name=n sub=proxy");
            check(&format!("{pod}{rest}"), "pods ns=a name=p sub=proxy");
            let path = format!("{pod}{rest}");
            assert_eq!(split_proxied(&path), Some((pod, rest)));
        }
        check("/api/v1/nodes/proxy", "nodes ns=- name=proxy sub=-");
        check(
            "/api/v1/namespaces/a/pods/proxy",
            "pods ns=a name=proxy sub=-",
        );
        assert_eq!(split_proxied("/api/v1/nodes/n/proxyx"), None);
    }

    #[test]
    fn malformed_paths_do_not_parse() {
        for path in [
            "/healthz/a/b",
            "/api/v1/nodes/%ff",
            "/nothing",
            "/api/v1/namespaces//pods",
            "/api//v1/nodes",
            "/a/b/c/d/e/f/g/h/i/j/k/l/m/n",
        ] {
            check(path, "None");
        }
    }
}
