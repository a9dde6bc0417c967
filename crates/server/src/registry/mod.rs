//! The resources of the API, one row each. Discovery, routing, printing, selectors and strategies
//! are all driven by these rows; a new resource is a new row in [`rows`].

mod rows;

use kennel_types::Verb;

use crate::kinds::Strategy;

pub use rows::{EMPTY, POSTED, RESOURCES};

/// Whether objects of a resource live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects live in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
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

/// A subresource, such as `pods/status`.
#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    /// Its name in the URL.
    pub name: &'static str,
    /// The group of the kind it takes, when it is not the parent's.
    pub group: Option<&'static str>,
    /// The version of the kind it takes, when it is not the parent's.
    pub version: Option<&'static str>,
    /// The kind it takes.
    pub kind: &'static str,
    /// The verbs it serves.
    pub verbs: &'static [Verb<'static>],
}

/// One resource of the API.
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The API version.
    pub version: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// The singular name kubectl accepts.
    pub singular: &'static str,
    /// The kind in bodies.
    pub kind: &'static str,
    /// Short names kubectl accepts.
    pub short_names: &'static [&'static str],
    /// Categories kubectl accepts, such as `all`.
    pub categories: &'static [&'static str],
    /// Where objects live.
    pub scope: Scope,
    /// The verbs it serves.
    pub verbs: &'static [Verb<'static>],
    /// Its subresources.
    pub subresources: &'static [Subresource],
    /// The key prefix below `/registry/`: upstream's own, old names included.
    pub storage: &'static str,
    /// The name rule of its objects.
    pub name_rule: NameRule,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`: JSON paths of the object.
    pub selectable: &'static [&'static str],
    /// The type of the schema table that describes its objects.
    pub schema: &'static str,
    /// Whether PUT creates what is missing.
    pub create_on_update: bool,
    /// Whether PUT works without a resourceVersion.
    pub unconditional_update: bool,
    /// Whether DELETE answers with the object instead of a Status.
    pub delete_returns_object: bool,
    /// The rules of its kind.
    pub strategy: &'static dyn Strategy,
}

impl Resource {
    /// `apiVersion` as it stands in bodies: `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.to_owned();
        }
        format!("{}/{}", self.group, self.version)
    }

    /// The resource as error messages name it: `pods` or `daemonsets.apps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            return self.plural.to_owned();
        }
        format!("{}.{}", self.plural, self.group)
    }

    /// Whether objects live in a namespace.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

/// A collection that upstream components insist on listing but Kennel has no use for: served
/// empty, not advertised, never written.
#[derive(Debug)]
pub struct EmptyCollection {
    /// The API group.
    pub group: &'static str,
    /// The API version.
    pub version: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// The kind of its items.
    pub kind: &'static str,
    /// Where its objects would live.
    pub scope: Scope,
}

impl EmptyCollection {
    /// `apiVersion` as it stands in bodies.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.to_owned();
        }
        format!("{}/{}", self.group, self.version)
    }
}

/// A resource that takes posts, answers them, and stores nothing under its own name.
#[derive(Debug)]
pub struct Posted {
    /// The API group.
    pub group: &'static str,
    /// The API version.
    pub version: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// The singular name kubectl accepts.
    pub singular: &'static str,
    /// The kind in bodies.
    pub kind: &'static str,
    /// Whether it is posted to a namespace.
    pub scope: Scope,
    /// The type of the schema table that describes its bodies.
    pub schema: &'static str,
}

impl Posted {
    /// `apiVersion` as it stands in bodies.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.to_owned();
        }
        format!("{}/{}", self.group, self.version)
    }
}

/// The row of a resource that is only posted to, by group, version and plural.
pub fn find_posted(group: &str, version: &str, plural: &str) -> Option<&'static Posted> {
    POSTED
        .iter()
        .find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The row of a resource, by group, version and plural.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES
        .iter()
        .find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The row of an always-empty collection, by group, version and plural.
pub fn find_empty(group: &str, version: &str, plural: &str) -> Option<&'static EmptyCollection> {
    EMPTY
        .iter()
        .find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The row in whose form objects of this row are stored: its own, unless it shares the storage of
/// an older version.
pub fn stored_row(row: &'static Resource) -> &'static Resource {
    RESOURCES
        .iter()
        .find(|r| r.storage == row.storage)
        .unwrap_or(row)
}

/// The served group-versions, core first, in the order of their rows.
pub fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut seen = Vec::new();
    let stored = RESOURCES.iter().map(|row| (row.group, row.version));
    for served in stored.chain(POSTED.iter().map(|row| (row.group, row.version))) {
        if !seen.contains(&served) {
            seen.push(served);
        }
    }
    seen
}
