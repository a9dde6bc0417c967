//! The resources of the API, one row each: a new resource is a new row in [`rows`].
//!
//! A row says everything the server needs to serve its resource. Discovery, routing and selectors read
//! its data; the verbs call its rules (`strategy`), its admission, its node restriction, its printer and
//! its conversion. Admission, verbs, objects, the router and watches do not branch on the name of a kind, which a test
//! checks. What a node may read of other objects does (`authorize::node`).

mod rows;
mod unserved;
mod versions;

use kennel_core::quota::Measurement;
use kennel_types::Verb;
use serde_json::Value;

use crate::admit::Admission;
use crate::admit::node_restriction::NodeRestriction;
use crate::kinds::Strategy;
use crate::projection::Projection;
use crate::table::Column;
use crate::table::printers::Printer;

pub use rows::{CREATE_ONLY, EMPTY, MEASURED, RESOURCES};
pub(crate) use unserved::instead;
pub use unserved::{UNSERVED, Unserved};
pub(crate) use versions::is_version;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// Which name rule a kind's objects follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS-1123 subdomain, at most 253 characters.
    Subdomain,
    /// A DNS-1123 label, at most 63 characters.
    Label,
    /// Anything that can be one segment of a URL path.
    PathSegment,
}

/// Which part of an object an update may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    Status,
    /// The approval of a certificate signing request.
    Approval,
    /// The finalizers in the spec of a namespace.
    Finalize,
    /// The node of a pod. The server sets it, so the kind's rules of an update do not apply.
    Binding,
    /// The ephemeral containers of a pod.
    EphemeralContainers,
}

impl Part {
    /// The subresource through which it is changed; empty for the object itself.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Approval => "approval",
            Self::Finalize => "finalize",
            Self::Binding => "binding",
            Self::EphemeralContainers => "ephemeralcontainers",
        }
    }
}

/// A subresource that the server forwards to the kubelet API of a node, or to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    Log,
    Exec,
    Attach,
    PortForward,
    PodProxy,
    NodeProxy,
}

impl Connect {
    /// Whether the connection is upgraded to another protocol (SPDY or WebSocket).
    pub fn is_stream(self) -> bool {
        matches!(self, Self::Exec | Self::Attach | Self::PortForward)
    }
}

/// What serves a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// GET reads the object; PUT and PATCH change one part of it.
    Update(Part),
    Binding,
    Eviction,
    /// `TokenRequest`.
    Token,
    Connect(Connect),
}

/// A subresource, such as `pods/status`.
#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    pub name: &'static str,
    /// The group of the kind it takes, when it is not the parent's.
    pub group: Option<&'static str>,
    /// The version of the kind it takes, when it is not the parent's.
    pub version: Option<&'static str>,
    /// The kind of its bodies.
    pub kind: &'static str,
    pub verbs: &'static [Verb<'static>],
    pub handler: Handler,
}

/// How a node reports with an object that it is alive. Such requests do not wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// By writing it, in the namespace of node leases.
    Lease,
    /// By writing its status; the node reads the object itself.
    Status,
}

/// The conversion between a row's own version and the version that another row stores.
#[derive(Clone, Copy)]
pub struct Conversion {
    pub from_stored: fn(&mut Value),
    pub to_stored: fn(&mut Value),
}

/// One resource of the API.
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub short_names: &'static [&'static str],
    /// Categories that kubectl accepts, such as `all`.
    pub categories: &'static [&'static str],
    pub scope: Scope,
    pub verbs: &'static [Verb<'static>],
    pub subresources: &'static [Subresource],
    /// Upstream's old name in keys, where it is not the plural.
    pub stored_as: Option<&'static str>,
    pub name_rule: NameRule,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`: JSON paths of the object.
    pub selectable: &'static [&'static str],
    /// The type in the schema table that describes its objects.
    pub schema: &'static str,
    /// Whether PUT creates an object that does not exist.
    pub create_on_update: bool,
    /// Whether PUT works without a resourceVersion.
    pub unconditional_update: bool,
    /// Whether DELETE answers with the object instead of a Status.
    pub delete_returns_object: bool,
    /// Whether agents and controllers create its objects again by themselves and nothing depends on their identity, so that
    /// a damaged one may be replaced.
    pub recreated: bool,
    /// Whether a state that a newer one has replaced may be left out of watches: the objects are large, change often, and every
    /// node watches them.
    pub coalesced: bool,
    /// Whether only few may read its objects: audit policies and logs treat reads as they treat writes.
    pub sensitive: bool,
    /// Whether its objects are encrypted at rest.
    pub encrypted: bool,
    /// Whether the cluster works without new objects of it: what the storage quota reserves for the cluster is not for them.
    pub expendable: bool,
    /// How nodes report with it that they are alive, if they do.
    pub heartbeat: Option<Heartbeat>,
    /// A member that is stored byte for byte as the client sent it, since controllers compare its bytes.
    pub raw_field: Option<&'static str>,
    /// Set when the row is another version of objects that an earlier row stores.
    pub conversion: Option<Conversion>,
    /// Set when the objects are computed from those of another row and nothing is stored. Such a row is read-only.
    pub(crate) projection: Option<&'static dyn Projection>,
    /// Defaults, validation and the other rules that need the object alone.
    pub strategy: &'static dyn Strategy,
    /// The rules that need other objects, the user or the cluster's settings.
    pub(crate) admission: &'static dyn Admission,
    /// How its objects count for resource quotas.
    pub measurement: Measurement,
    /// What the kubelet of a node may write.
    pub(crate) node_restriction: &'static dyn NodeRestriction,
    /// The table that `kubectl get` shows.
    pub(crate) printer: &'static Printer,
}

impl Resource {
    /// `apiVersion` as bodies have it.
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }

    /// The resource as error messages name it: `pods` or `daemonsets.apps`.
    pub fn qualified(&self) -> String {
        qualified(self.plural, self.group)
    }

    /// The key prefix below `/registry/`: upstream's own, old names included.
    pub fn storage(&self) -> &'static str {
        self.stored_as.unwrap_or(self.plural)
    }

    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Converts an object from the stored version to the row's own.
    pub fn convert_from_stored(&self, tree: &mut Value) {
        if let Some(conversion) = self.conversion {
            (conversion.from_stored)(tree);
        }
    }

    /// Converts an object from the row's own version to the stored one.
    pub fn convert_to_stored(&self, tree: &mut Value) {
        if let Some(conversion) = self.conversion {
            (conversion.to_stored)(tree);
        }
    }
}

/// A collection that upstream components insist on listing but Kennel has no use for: served
/// empty, not advertised, never written.
#[derive(Debug)]
pub struct EmptyCollection {
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    /// The kind of its items.
    pub kind: &'static str,
    pub scope: Scope,
    /// The columns of its table.
    pub(crate) columns: &'static [Column],
}

impl EmptyCollection {
    /// `apiVersion` as bodies have it.
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }
}

/// The user whose rights an access review asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The user who sends it.
    Caller,
    /// The user that its spec names.
    Any,
    /// The user that its spec names, in the namespace it is posted to.
    InNamespace,
}

/// What answers a POST to a resource that stores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostHandler {
    Binding,
    SelfSubjectReview,
    TokenReview,
    AccessReview(Subject),
    RulesReview,
}

/// A resource that serves POST alone and stores nothing under its own name.
#[derive(Debug)]
pub struct CreateOnly {
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub scope: Scope,
    /// The type in the schema table that describes its bodies.
    pub schema: &'static str,
    pub handler: PostHandler,
}

impl CreateOnly {
    /// `apiVersion` as bodies have it.
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }
}

/// A resource whose objects the server computes for each request, from what the agents of nodes measure. They have the
/// names, namespaces and labels of stored objects.
#[derive(Debug)]
pub struct Measured {
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub scope: Scope,
    /// The type in the schema table that describes its objects.
    pub schema: &'static str,
    pub subject: MeasuredSubject,
}

/// The objects of the core group whose usage is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredSubject {
    Nodes,
    Pods,
}

impl Measured {
    /// The verbs that it serves.
    pub const VERBS: &'static [Verb<'static>] = &[Verb::Get, Verb::List];

    /// `apiVersion` as bodies have it.
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }
}

/// A name with its group, if that is not the core group: `pods` or `daemonsets.apps`.
pub fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        return name.to_owned();
    }
    format!("{name}.{group}")
}

/// `apiVersion` as bodies have it: `v1` or `apps/v1`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        return version.to_owned();
    }
    format!("{group}/{version}")
}

/// The Go package of a group's types: `core` or `apps`.
pub(crate) fn package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some(first) => first,
    }
}

/// The row of a resource that serves POST alone, by group, version and plural.
pub fn find_create_only(group: &str, version: &str, plural: &str) -> Option<&'static CreateOnly> {
    CREATE_ONLY
        .iter()
        .find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The row of a measured resource, by group, version and plural.
pub fn find_measured(group: &str, version: &str, plural: &str) -> Option<&'static Measured> {
    MEASURED
        .iter()
        .find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The row of a resource, by group, version and plural.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES
        .iter()
        .find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The row of a resource that the server itself uses. The callers name rows of the table.
pub(crate) fn served(group: &str, plural: &str) -> &'static Resource {
    find(group, "v1", plural).expect("the table has this resource")
}

/// The same in the core group.
pub(crate) fn core(plural: &str) -> &'static Resource {
    served("", plural)
}

/// The row of an always-empty collection, by group, version and plural.
pub fn find_empty(group: &str, version: &str, plural: &str) -> Option<&'static EmptyCollection> {
    EMPTY
        .iter()
        .find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The row in whose version objects of this row are stored: its own, unless it has a conversion.
pub fn stored_row(row: &'static Resource) -> &'static Resource {
    if row.conversion.is_none() {
        return row;
    }
    RESOURCES
        .iter()
        .find(|r| r.storage() == row.storage())
        .unwrap_or(row)
}

/// The served group-versions, core first, in the order of their rows.
pub fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    let stored = RESOURCES.iter().map(|row| (row.group, row.version));
    let create_only = CREATE_ONLY.iter().map(|row| (row.group, row.version));
    let measured = MEASURED.iter().map(|row| (row.group, row.version));
    for served in stored.chain(create_only).chain(measured) {
        if !found.contains(&served) {
            found.push(served);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete() {
        for row in RESOURCES {
            let fields = [row.plural, row.kind, row.schema];
            assert!(fields.iter().all(|text| !text.is_empty()), "{fields:?}");
            assert!(crate::schema::find(row.schema).is_some(), "{}", row.schema);
        }
    }

    #[test]
    fn only_what_is_stored_can_be_written() {
        let reads = [Verb::Get, Verb::List, Verb::Watch];
        for row in RESOURCES {
            let is_read_only = row.verbs.iter().all(|verb| reads.contains(verb));
            assert_eq!(
                is_read_only,
                row.projection.is_some(),
                "{}",
                row.qualified()
            );
        }
    }

    #[test]
    fn what_is_encrypted_at_rest_is_sensitive() {
        let named = |has: fn(&Resource) -> bool| -> Vec<String> {
            let rows = RESOURCES.iter().filter(|row| has(row));
            rows.map(Resource::qualified).collect()
        };
        assert_eq!(named(|row| row.encrypted), ["secrets"]);
        assert_eq!(named(|row| row.sensitive), ["secrets"]);
        let events = ["events", "events.events.k8s.io"];
        assert_eq!(named(|row| row.expendable), events);
        let heartbeats = ["nodes", "leases.coordination.k8s.io"];
        assert_eq!(named(|row| row.heartbeat.is_some()), heartbeats);
    }

    #[test]
    fn only_rows_with_a_conversion_share_their_storage() {
        for row in RESOURCES {
            let first = RESOURCES.iter().find(|r| r.storage() == row.storage());
            let is_first = first.is_some_and(|first| std::ptr::eq(first, row));
            assert_eq!(is_first, row.conversion.is_none(), "{}", row.qualified());
        }
    }

    /// The quota controller, a client of any Kubernetes API, knows the measurement by the name.
    #[test]
    fn rows_count_for_quotas_as_the_controller_has_it() {
        for row in RESOURCES {
            let expected = Measurement::of(row.group, row.plural);
            assert_eq!(row.measurement, expected, "{}", row.qualified());
        }
    }

    /// "A new resource is a new row": rules of a kind are called through its row.
    #[test]
    fn no_module_branches_on_the_name_of_a_kind() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut pending = [
            "admit",
            "api.rs",
            "fairness",
            "object",
            "request",
            "router.rs",
            "seal",
            "verbs",
            "watch",
        ]
        .map(|name| source.join(name))
        .to_vec();
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                let entries = std::fs::read_dir(&path).unwrap();
                pending.extend(entries.map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for field in ["kind", "plural", "singular", "group"] {
                for branch in [
                    format!("row.{field} == \""),
                    format!("row.{field} != \""),
                    format!("match row.{field}"),
                    format!("matches!(row.{field}"),
                    format!("match (row.{field}"),
                    format!("row.{field}) == ("),
                ] {
                    assert!(!text.contains(&branch), "{}: {branch}", path.display());
                }
            }
        }
    }
}
