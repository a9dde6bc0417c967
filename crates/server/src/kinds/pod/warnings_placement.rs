//! Warnings about node labels, affinity and the paths of projected tokens.

use serde_json::Value;

use super::warnings::keys;
use crate::field::Path;
use crate::names;
use crate::tree::{list, text, texts};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
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
        if let Some(required) = affinity.get(REQUIRED) {
            let at = at.child(REQUIRED).child("nodeSelectorTerms");
            for (i, term) in list(required, "nodeSelectorTerms").iter().enumerate() {
                node_term(found, term, &at.index(i), false);
            }
        }
        for (i, term) in list(affinity, PREFERRED).iter().enumerate() {
            let at = at.child(PREFERRED).index(i).child("preference");
            node_term(
                found,
                term.get("preference").unwrap_or(&Value::Null),
                &at,
                true,
            );
        }
    }
    for (i, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = at.child("topologySpreadConstraints").index(i);
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
    for (i, expression) in list(term, "matchExpressions").iter().enumerate() {
        let at = at.child("matchExpressions").index(i);
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
        for (i, term) in list(terms, REQUIRED).iter().enumerate() {
            if term.get("labelSelector").is_none() {
                let at = at.child(REQUIRED).index(i).child("labelSelector");
                found.push(format!("{at}: {MATCHES_NOTHING}"));
            }
        }
        for (i, term) in list(terms, PREFERRED).iter().enumerate() {
            let inner = term.get("podAffinityTerm");
            if inner.is_none_or(|term| term.get("labelSelector").is_none()) {
                let at = at.child(PREFERRED).index(i).child("podAffinityTerm");
                found.push(format!("{}: {MATCHES_NOTHING}", at.child("labelSelector")));
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
