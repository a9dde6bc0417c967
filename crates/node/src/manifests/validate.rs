//! Validates static pods: the few of the API server's rules that running a pod depends on.

use std::collections::BTreeSet;

use kennel_core::names;
use kennel_core::pod::references::{PROJECTED, VOLUMES};
use serde_json::Value;

use crate::json::{list, text};

/// References in a container's environment, and the kind that upstream's message names.
const ENVIRONMENT: [(&str, &str, &str); 4] = [
    ("env", "/valueFrom/secretKeyRef", "secrets"),
    ("env", "/valueFrom/configMapKeyRef", "configmaps"),
    ("envFrom", "/secretRef", "secrets"),
    ("envFrom", "/configMapRef", "configmaps"),
];

/// The kind of an API object that a pod's spec refers to, if any: static pods run without an API server.
pub(super) fn reference(spec: &Value) -> Option<&'static str> {
    if spec["serviceAccountName"].is_string() || spec["serviceAccount"].is_string() {
        return Some("serviceaccounts");
    }
    if !list(spec, "imagePullSecrets").is_empty() {
        return Some("secrets");
    }
    if !list(spec, "resourceClaims").is_empty() {
        return Some("resourceclaims");
    }
    let environment = containers(spec).find_map(|(_, container)| {
        ENVIRONMENT.iter().find_map(|(field, pointer, what)| {
            let named = |item: &Value| item.pointer(pointer).is_some();
            list(container, field).iter().any(named).then_some(*what)
        })
    });
    environment.or_else(|| list(spec, "volumes").iter().find_map(volume))
}

fn volume(volume: &Value) -> Option<&'static str> {
    let known = |tree: &Value, table: &[(&'static str, &'static str)]| {
        let row = table.iter().find(|(field, _)| tree[field].is_object());
        row.map(|(_, what)| *what)
    };
    let mut sources = list(&volume["projected"], "sources").iter();
    known(volume, &VOLUMES).or_else(|| sources.find_map(|source| known(source, &PROJECTED)))
}

/// A mistake in a manifest, in the words of the API server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidPod(String);

fn required(field: &str) -> InvalidPod {
    InvalidPod(format!("{field}: Required value"))
}

pub(super) fn check(pod: &Value) -> Result<(), InvalidPod> {
    let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
    check_name("metadata.name", &metadata["name"], names::dns1123_subdomain)?;
    check_name(
        "metadata.namespace",
        &metadata["namespace"],
        names::dns1123_label,
    )?;
    let policy = &spec["restartPolicy"];
    if !["Always", "OnFailure", "Never"].iter().any(|p| policy == p) {
        return Err(InvalidPod(format!(
            "spec.restartPolicy: Unsupported value: {policy}: supported values: \"Always\", \"OnFailure\", \"Never\""
        )));
    }
    if list(spec, "containers").is_empty() {
        return Err(required("spec.containers"));
    }
    if !list(spec, "ephemeralContainers").is_empty() {
        let why = "spec.ephemeralContainers: Forbidden: cannot be set on create";
        return Err(InvalidPod(why.to_owned()));
    }
    let mut volumes = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let at = format!("spec.volumes[{index}].name");
        check_name(&at, &volume["name"], names::dns1123_label)?;
        check_unique(&at, &volume["name"], &mut volumes)?;
    }
    let mut known = BTreeSet::new();
    for (at, container) in containers(spec) {
        check_container(&at, container, &volumes)?;
        check_unique(&format!("{at}.name"), &container["name"], &mut known)?;
    }
    Ok(())
}

fn check_container(
    at: &str,
    container: &Value,
    volumes: &BTreeSet<&str>,
) -> Result<(), InvalidPod> {
    let name = format!("{at}.name");
    check_name(&name, &container["name"], names::dns1123_label)?;
    if text(container, "image").is_empty() {
        return Err(required(&format!("{at}.image")));
    }
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = format!("{at}.volumeMounts[{index}]");
        let name = text(mount, "name");
        if !volumes.contains(name) {
            return Err(InvalidPod(format!("{at}.name: Not found: {name:?}")));
        }
        if text(mount, "mountPath").is_empty() {
            return Err(required(&format!("{at}.mountPath")));
        }
    }
    Ok(())
}

fn check_name(field: &str, name: &Value, rule: fn(&str) -> Vec<String>) -> Result<(), InvalidPod> {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(required(field));
    }
    match rule(name).into_iter().next() {
        Some(reason) => Err(InvalidPod(format!(
            "{field}: Invalid value: {name:?}: {reason}"
        ))),
        None => Ok(()),
    }
}

fn check_unique<'a>(
    field: &str,
    name: &'a Value,
    known: &mut BTreeSet<&'a str>,
) -> Result<(), InvalidPod> {
    let name = name.as_str().unwrap_or_default();
    if known.insert(name) {
        Ok(())
    } else {
        Err(InvalidPod(format!("{field}: Duplicate value: {name:?}")))
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|field| {
            let all = list(spec, field).iter().enumerate();
            all.map(move |(index, container)| (format!("spec.{field}[{index}]"), container))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_to_api_objects_are_found() {
        let check = |spec: Value, expected: Option<&str>| {
            assert_eq!(reference(&spec), expected, "{spec}");
        };
        check(json!({"serviceAccountName": "x"}), Some("serviceaccounts"));
        check(
            json!({"imagePullSecrets": [{"name": "x"}]}),
            Some("secrets"),
        );
        let env = |env: Value| json!({"containers": [{"env": [{"valueFrom": env}]}]});
        check(env(json!({"secretKeyRef": {}})), Some("secrets"));
        check(env(json!({"configMapKeyRef": {}})), Some("configmaps"));
        check(env(json!({"fieldRef": {}})), None);
        let from = json!({"initContainers": [{"envFrom": [{"configMapRef": {}}]}]});
        check(from, Some("configmaps"));
        let volume = |volume: Value| json!({"volumes": [{"emptyDir": {}}, volume]});
        check(volume(json!({"hostPath": {"path": "/x"}})), None);
        check(
            volume(json!({"secret": {}})),
            Some("secrets (via secret volumes)"),
        );
        check(
            volume(json!({"projected": {"sources": [{"downwardAPI": {}}, {"configMap": {}}]}})),
            Some("configmaps (via projected volumes)"),
        );
    }

    #[test]
    fn invalid_pods_are_rejected_in_the_api_servers_words() {
        let check = |change: fn(&mut Value), expected: &str| {
            let mut pod = json!({"metadata": {"name": "a", "namespace": "default"}, "spec": {
                "restartPolicy": "Always", "volumes": [{"name": "v"}],
                "containers": [{"name": "c", "image": "i",
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}});
            change(&mut pod);
            let error = check(&pod).err();
            let error = error.map(|error| error.to_string());
            assert_eq!(error.unwrap_or_default(), expected);
        };
        check(|_| {}, "");
        check(
            |pod| pod["spec"]["containers"] = json!([]),
            "spec.containers: Required value",
        );
        check(
            |pod| pod["spec"]["containers"][0]["image"] = json!(""),
            "spec.containers[0].image: Required value",
        );
        check(
            |pod| pod["spec"]["volumes"] = json!([]),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        );
        check(
            |pod| pod["spec"]["initContainers"] = pod["spec"]["containers"].clone(),
            "spec.containers[0].name: Duplicate value: \"c\"",
        );
        check(
            |pod| pod["spec"]["restartPolicy"] = json!("Sometimes"),
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        );
    }
}
