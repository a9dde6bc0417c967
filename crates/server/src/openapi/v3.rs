//! OpenAPI 3.0: an index, and one document per group-version.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Dialect;
use super::descriptions::Descriptions;
use super::operations::{paths, root};
use super::packed::{Packed, Part};
use super::parameters::path_item;
use super::schemas::{Definitions, definitions, definitions_of_all};
use crate::discovery::Document;
use crate::registry::group_versions;

type GroupVersion = (&'static str, &'static str);

/// The documents, by group and version: all of them, since the index has their hashes.
static DOCUMENTS: LazyLock<BTreeMap<GroupVersion, Packed>> = LazyLock::new(|| {
    let served = group_versions().into_iter();
    let (core, named): (Vec<_>, Vec<_>) = served.partition(|(group, _)| group.is_empty());
    // A client waits for all of them, and the core group's takes about as long as the others together.
    std::thread::scope(|scope| {
        let core = scope.spawn(|| documents(core));
        let mut all = documents(named);
        let core = core.join();
        all.extend(core.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    })
});

fn documents(served: Vec<GroupVersion>) -> BTreeMap<GroupVersion, Packed> {
    let descriptions = Descriptions::read();
    let of_all = definitions_of_all(Dialect::V3, &descriptions);
    let end = Part::new(&end(&of_all));
    let documents = served.into_iter().map(|(group, version)| {
        let own = Part::new(&start(group, version, &descriptions, &of_all));
        ((group, version), Packed::join(&[&own, &end]))
    });
    documents.collect()
}

/// `GET /openapi/v3`: where each document is.
pub fn v3_index() -> &'static Document {
    static INDEX: LazyLock<Document> = LazyLock::new(|| {
        let paths: BTreeMap<String, Value> = DOCUMENTS
            .iter()
            .map(|((group, version), document)| {
                let hash = document.etag.trim_matches('"');
                let url = v3_url(group, version, hash);
                (root(group, version), json!({"serverRelativeURL": url}))
            })
            .collect();
        Document::new(&json!({"paths": paths}))
    });
    &INDEX
}

/// The URL of the document with some hash.
pub fn v3_url(group: &str, version: &str, hash: &str) -> String {
    format!("/openapi/v3/{}?hash={hash}", root(group, version))
}

/// `GET /openapi/v3/api/v1` (empty group) and `GET /openapi/v3/apis/<group>/<version>`.
pub fn v3_document(group: &str, version: &str) -> Option<&'static Packed> {
    let mut documents = DOCUMENTS.iter();
    let found = documents.find(|(served, _)| **served == (group, version));
    found.map(|(_, document)| document)
}

/// A document up to the definitions that every group-version has, written without building a tree of the whole.
fn start(
    group: &'static str,
    version: &'static str,
    descriptions: &Descriptions,
    of_all: &Definitions,
) -> Vec<u8> {
    let paths = paths(group, version);
    let mut out = Vec::with_capacity(64 * 1024);
    out.extend_from_slice(b"{\"openapi\":\"3.0.0\",\"info\":");
    write(&mut out, &super::info());
    out.extend_from_slice(b",\"paths\":{");
    let items = paths
        .iter()
        .map(|p| (p.path.as_str(), path_item(p, Dialect::V3)));
    write_members(&mut out, items);
    out.extend_from_slice(b"},\"components\":{\"schemas\":{");
    let definitions = definitions(&paths, Dialect::V3, descriptions, of_all);
    write_members(&mut out, definitions.iter());
    out
}

/// The end of every document.
fn end(of_all: &Definitions) -> Vec<u8> {
    let mut out = vec![b','];
    write_members(&mut out, of_all.iter());
    out.extend_from_slice(b"}}}");
    out
}

/// Writes the members of an object, without its braces.
pub(super) fn write_members(
    out: &mut Vec<u8>,
    members: impl Iterator<Item = (impl serde::Serialize, impl serde::Serialize)>,
) {
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, &name);
        out.push(b':');
        write(out, &value);
    }
}

pub(super) fn write(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    serde_json::to_writer(out, value).expect("trees always serialise into memory");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(document: &Document) -> Value {
        serde_json::from_slice(&document.body).expect("a document is JSON")
    }

    #[test]
    fn the_index_leads_to_every_document() {
        let index = parse(v3_index());
        let paths = index["paths"].as_object().expect("paths");
        assert_eq!(paths.len(), group_versions().len());
        for (group, version) in group_versions() {
            let document = v3_document(group, version).expect("served").document();
            let hash = document.etag.trim_matches('"');
            let root = root(group, version);
            let url = format!("/openapi/v3/{root}?hash={hash}");
            assert_eq!(paths[&root]["serverRelativeURL"], url);
            let parsed = parse(&document);
            assert_eq!(parsed["openapi"], "3.0.0");
            assert!(
                !parsed["paths"].as_object().expect("paths").is_empty(),
                "{root}"
            );
        }
        assert!(v3_document("batch", "v1").is_none());
        assert!(v3_document("apps", "v2").is_none());
    }

    #[test]
    fn a_document_describes_its_kinds() {
        let apps = parse(&v3_document("apps", "v1").expect("served").document());
        let schemas = &apps["components"]["schemas"];
        let spec = &schemas["io.k8s.api.apps.v1.DaemonSetSpec"]["properties"];
        assert!(spec.get("updateStrategy").is_some());
        assert!(
            apps["paths"]
                .get("/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}")
                .is_some()
        );
        // Every kind an operation names can be explained.
        let core = parse(&v3_document("", "v1").expect("served").document());
        let schemas = &core["components"]["schemas"];
        assert!(schemas.get("io.k8s.api.policy.v1.Eviction").is_some());
        assert!(schemas.get("io.k8s.api.core.v1.Binding").is_some());
    }
}
