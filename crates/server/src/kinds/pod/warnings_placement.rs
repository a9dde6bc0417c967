//! Warnings about node labels, affinity and the paths of projected tokens.

use serde_json::Value;

use super::affinity::{PREFERRED, REQUIRED};
use super::warnings::keys;
use crate::field::Path;
use crate::kinds::check::each;
use crate::names;
use crate::tree::{has, list, text, texts};

const MATCHES_NOTHING: &str = "a null labelSelector results in matching no pod";

/// Deprecated node labels and their replacements.
fn deprecated(label: &str) -> Option<&'static str> {
    match label {
        "beta.kubernetes.io/arch" => {
            Some("deprecated since v1.14; use \"kubernetes.io/arch\" instead")
        }
        "beta.kubernetes.io/os" => Some("deprecated since v1.14; use \"kubernetes.io/os\" instead"),
        "failure-domain.beta.kubernetes.io/region" => {
            Some("deprecated since v1.17; use \"topology.kubernetes.io/region\" instead")
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            Some("deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead")
        }
        "beta.kubernetes.io/instance-type" => {
            Some("deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead")
        }
        _ => None,
    }
}

/// Deprecated node labels in selectors, affinity and spread constraints.
pub(super) fn node_labels(found: &mut Vec<String>, spec: &Value, at: &Path) {
    for key in keys(spec, "nodeSelector") {
        if let Some(why) = deprecated(key) {
            found.push(format!("{}: {why}", at.child("nodeSelector").key(key)));
        }
    }
    if let Some(affinity) = spec.get("affinity").and_then(|a| a.get("nodeAffinity")) {
        let at = at.child("affinity").child("nodeAffinity");
        let required = at.child(REQUIRED);
        for (term, at) in each(&affinity[REQUIRED], &required, "nodeSelectorTerms") {
            node_term(found, term, &at, false);
        }
        for (term, at) in each(affinity, &at, PREFERRED) {
            node_term(found, &term["preference"], &at.child("preference"), true);
        }
    }
    for (constraint, at) in each(spec, at, "topologySpreadConstraints") {
        let key = text(constraint, "topologyKey");
        if let Some(why) = deprecated(key) {
            found.push(format!("{}: {key} is {why}", at.child("topologyKey")));
        }
        if constraint.get("labelSelector").is_none() {
            found.push(format!("{}: {MATCHES_NOTHING}", at.child("labelSelector")));
        }
    }
}

/// Values of preferred terms are not validated, so invalid ones get a warning.
fn node_term(found: &mut Vec<String>, term: &Value, at: &Path, check_values: bool) {
    for (expression, at) in each(term, at, "matchExpressions") {
        let key = text(expression, "key");
        if let Some(why) = deprecated(key) {
            found.push(format!("{}: {key} is {why}", at.child("key")));
        }
        if !check_values {
            continue;
        }
        for (v, value) in texts(expression, "values").enumerate() {
            for mistake in names::label_value(value) {
                let at = at.child("values").index(v);
                found.push(format!("{at}: {value} is invalid, {mistake}"));
            }
        }
    }
}

/// Terms of pod affinity without a selector match no pod.
pub(super) fn pod_affinity(found: &mut Vec<String>, spec: &Value, at: &Path) {
    let Some(affinity) = spec.get("affinity") else {
        return;
    };
    for name in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = affinity.get(name) else {
            continue;
        };
        let at = at.child("affinity").child(name);
        for (list, selector) in [
            (REQUIRED, "labelSelector"),
            (PREFERRED, "podAffinityTerm.labelSelector"),
        ] {
            for (term, at) in each(terms, &at, list) {
                if !has(term, selector) {
                    found.push(format!("{}: {MATCHES_NOTHING}", at.child(selector)));
                }
            }
        }
    }
}

/// Files that a projected token would overwrite. As upstream, the paths omit the source's index.
pub(super) fn token_paths(found: &mut Vec<String>, spec: &Value, at: &Path) {
    let volumes = list(spec, "volumes");
    let tokens: Vec<&str> = volumes
        .iter()
        .flat_map(projected_sources)
        .filter_map(|source| Some(text(source.get("serviceAccountToken")?, "path")))
        .collect();
    if tokens.is_empty() {
        return;
    }
    for (i, volume) in volumes.iter().enumerate() {
        for source in projected_sources(volume) {
            for (key, shown) in [
                ("configMap", "configMap"),
                ("secret", "secrets"),
                ("downwardAPI", "downwardAPI"),
            ] {
                let Some(projection) = source.get(key) else {
                    continue;
                };
                for (j, item) in list(projection, "items").iter().enumerate() {
                    let path = text(item, "path");
                    if tokens.contains(&path) {
                        let at = at.child("volumes").index(i).child("projected");
                        let at = at.child("sources").child(shown).index(j);
                        let path = Value::from(path);
                        found.push(format!(
                            "{at}: has duplicated path with ServiceAccountToken {path}"
                        ));
                    }
                }
            }
        }
    }
}

fn projected_sources(volume: &Value) -> &[Value] {
    let projected = volume.get("projected");
    projected.map_or(&[], |projected| list(projected, "sources"))
}
