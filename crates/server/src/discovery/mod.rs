//! Discovery: lists the served resources from the rows of the registry, and `/version`.
//!
//! There are two forms: one answer per group-version, and aggregated discovery for newer clients. A resource
//! that is not served must not be listed, because upstream's garbage collector watches everything that is.

mod aggregated;
pub(crate) mod document;
pub(crate) mod entry;
mod legacy;
mod version;

use std::sync::LazyLock;

use crate::registry;

pub use aggregated::aggregated;
pub use document::Document;
pub use legacy::{api_group, api_groups, api_resources, api_versions};
pub use version::version;

/// A discovery answer that never changes while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page<'a> {
    /// `GET /apis`.
    Groups,
    /// `GET /apis/<group>`.
    Group(&'a str),
    /// `GET /api/v1` (group empty) or `GET /apis/<group>/<version>`.
    Resources(&'a str, &'a str),
    /// `GET /api` (core) or `GET /apis` (not core) as `APIGroupDiscoveryList`, `v2` or `v2beta1`.
    Aggregated {
        /// Whether it is `/api`.
        core: bool,
        /// The version of `apidiscovery.k8s.io`.
        version: &'a str,
    },
    /// `GET /version`.
    Version,
}

/// A discovery answer as bytes with its `ETag`, encoded once. `None` if there is no such group.
pub fn page(page: Page<'_>) -> Option<&'static Document> {
    static GROUPS: LazyLock<Document> = LazyLock::new(|| Document::new(&api_groups()));
    static VERSION: LazyLock<Document> = LazyLock::new(|| Document::new(&version()));
    static RESOURCES: LazyLock<Vec<(&str, &str, Document)>> = LazyLock::new(all_resources);
    static GROUP: LazyLock<Vec<(&str, Document)>> = LazyLock::new(all_groups);
    static AGGREGATED: LazyLock<[Document; 4]> = LazyLock::new(|| {
        [
            (true, "v2"),
            (false, "v2"),
            (true, "v2beta1"),
            (false, "v2beta1"),
        ]
        .map(|(core, version)| Document::new(&aggregated(core, version)))
    });
    match page {
        Page::Groups => Some(&GROUPS),
        Page::Version => Some(&VERSION),
        Page::Group(name) => GROUP.iter().find(|(g, _)| *g == name).map(|(_, d)| d),
        Page::Resources(group, version) => RESOURCES
            .iter()
            .find(|(g, v, _)| (*g, *v) == (group, version))
            .map(|(_, _, d)| d),
        Page::Aggregated { core, version } => {
            let first = match version {
                "v2" => 0,
                "v2beta1" => 2,
                _ => return None,
            };
            Some(&AGGREGATED[first + usize::from(!core)])
        }
    }
}

fn all_resources() -> Vec<(&'static str, &'static str, Document)> {
    let served = registry::group_versions().into_iter();
    served
        .filter_map(|(g, v)| Some((g, v, Document::new(&api_resources(g, v)?))))
        .collect()
}

fn all_groups() -> Vec<(&'static str, Document)> {
    let served = entry::groups().into_iter();
    served
        .filter_map(|(group, _)| Some((group, Document::new(&api_group(group)?))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_values_and_unknown_ones_are_absent() {
        let check = |asked: Page<'_>, value: &serde_json::Value| {
            let body = &page(asked).expect("a page").body;
            let parsed: serde_json::Value = serde_json::from_slice(body).expect("JSON");
            assert_eq!(&parsed, value, "{asked:?}");
        };
        check(Page::Groups, &api_groups());
        check(Page::Version, &version());
        check(Page::Group("apps"), &api_group("apps").expect("apps"));
        for (group, version) in registry::group_versions() {
            let resources = api_resources(group, version).expect("served");
            check(Page::Resources(group, version), &resources);
        }
        for (core, version) in [
            (true, "v2"),
            (false, "v2"),
            (true, "v2beta1"),
            (false, "v2beta1"),
        ] {
            check(
                Page::Aggregated { core, version },
                &aggregated(core, version),
            );
        }
        assert!(page(Page::Group("batch")).is_none());
        assert!(page(Page::Group("")).is_none());
        assert!(page(Page::Resources("apps", "v1beta1")).is_none());
        let v3 = Page::Aggregated {
            core: true,
            version: "v3",
        };
        assert!(page(v3).is_none());
    }
}
