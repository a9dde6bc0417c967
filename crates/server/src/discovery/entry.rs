//! The resources that discovery lists: the rows of the registry, the resources that serve POST alone, and those that are
//! measured.

use kennel_types::Verb;

use crate::registry::{self, CREATE_ONLY, MEASURED, Measured, RESOURCES, Scope, Subresource};

/// One listed resource.
pub(crate) struct Entry {
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) scope: Scope,
    pub(crate) verbs: &'static [Verb<'static>],
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    pub(crate) subresources: Vec<Subresource>,
}

impl Entry {
    pub(super) fn singular(&self) -> String {
        self.kind.to_lowercase()
    }
}

/// The resources of a group-version in upstream's order: by name, subresources too.
pub(crate) fn entries(group: &str, version: &str) -> Vec<Entry> {
    let rows = RESOURCES
        .iter()
        .filter(|r| (r.group, r.version) == (group, version));
    let stored = rows.map(|row| {
        let mut subresources = row.subresources.to_vec();
        subresources.sort_by_key(|s| s.name);
        Entry {
            plural: row.plural,
            kind: row.kind,
            scope: row.scope,
            verbs: row.verbs,
            short_names: row.short_names,
            categories: row.categories,
            subresources,
        }
    });
    let create_only = CREATE_ONLY
        .iter()
        .filter(|c| (c.group, c.version) == (group, version));
    let create_only = create_only.map(|row| Entry {
        plural: row.plural,
        kind: row.kind,
        scope: row.scope,
        verbs: &[Verb::Create],
        short_names: &[],
        categories: &[],
        subresources: Vec::new(),
    });
    let measured = MEASURED
        .iter()
        .filter(|r| (r.group, r.version) == (group, version));
    let measured = measured.map(|row| Entry {
        plural: row.plural,
        kind: row.kind,
        scope: row.scope,
        verbs: Measured::VERBS,
        short_names: &[],
        categories: &[],
        subresources: Vec::new(),
    });
    let mut entries: Vec<Entry> = stored.chain(create_only).chain(measured).collect();
    entries.sort_by_key(|entry| entry.plural);
    entries
}

/// The named groups with their versions, in the order of the rows. The core group is not one.
pub(super) fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (group, version) in registry::group_versions() {
        match groups.iter_mut().find(|(g, _)| *g == group) {
            Some((_, versions)) => versions.push(version),
            None if group.is_empty() => {}
            None => groups.push((group, vec![version])),
        }
    }
    groups
}
