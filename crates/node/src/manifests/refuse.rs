//! What a pod of a file cannot be. The API's own rules are many more; these are those without which a node could
//! not even try.

use std::collections::BTreeSet;

use kennel_core::names;
use kennel_core::pod::references::{PROJECTED, VOLUMES};
use serde_json::Value;

/// What the environment of a container may name, and what upstream calls it.
const ENVIRONMENT: [(&str, &str, &str); 4] = [
    ("env", "/valueFrom/secretKeyRef", "secrets"),
    ("env", "/valueFrom/configMapKeyRef", "configmaps"),
    ("envFrom", "/secretRef", "secrets"),
    ("envFrom", "/configMapRef", "configmaps"),
];

/// What other object of the API a pod's spec needs, if any: static pods run without an API.
pub(super) fn reference(spec: &Value) -> Option<&'static str> {
    if spec["serviceAccountName"].is_string() || spec["serviceAccount"].is_string() {
        return Some("serviceaccounts");
    }
    if items(&spec["imagePullSecrets"]).next().is_some() {
        return Some("secrets");
    }
    if items(&spec["resourceClaims"]).next().is_some() {
        return Some("resourceclaims");
    }
    let environment = containers(spec).find_map(|(_, container)| {
        ENVIRONMENT.iter().find_map(|(list, pointer, what)| {
            let named = |item: &Value| item.pointer(pointer).is_some();
            items(&container[list]).any(named).then_some(*what)
        })
    });
    environment.or_else(|| items(&spec["volumes"]).find_map(volume))
}

fn volume(volume: &Value) -> Option<&'static str> {
    let known = |tree: &Value, table: &[(&'static str, &'static str)]| {
        let row = table.iter().find(|(field, _)| tree[field].is_object());
        row.map(|(_, what)| *what)
    };
    let mut sources = items(&volume["projected"]["sources"]);
    known(volume, &VOLUMES).or_else(|| sources.find_map(|source| known(source, &PROJECTED)))
}

/// What is wrong with a pod, in the words of the API's own rules.
pub(super) fn check(pod: &Value) -> Result<(), String> {
    let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
    is_name("metadata.name", &metadata["name"], names::dns1123_subdomain)?;
    is_name(
        "metadata.namespace",
        &metadata["namespace"],
        names::dns1123_label,
    )?;
    let policy = &spec["restartPolicy"];
    if !["Always", "OnFailure", "Never"].iter().any(|p| policy == p) {
        return Err(format!(
            "spec.restartPolicy: Unsupported value: {policy}: supported values: \"Always\", \"OnFailure\", \"Never\""
        ));
    }
    if items(&spec["containers"]).next().is_none() {
        return Err("spec.containers: Required value".to_owned());
    }
    if items(&spec["ephemeralContainers"]).next().is_some() {
        return Err("spec.ephemeralContainers: Forbidden: cannot be set on create".to_owned());
    }
    let mut volumes = BTreeSet::new();
    for (index, volume) in items(&spec["volumes"]).enumerate() {
        let at = format!("spec.volumes[{index}].name");
        is_name(&at, &volume["name"], names::dns1123_label)?;
        is_new(&at, &volume["name"], &mut volumes)?;
    }
    let mut known = BTreeSet::new();
    for (at, container) in containers(spec) {
        check_container(&at, container, &volumes)?;
        is_new(&format!("{at}.name"), &container["name"], &mut known)?;
    }
    Ok(())
}

fn check_container(at: &str, container: &Value, volumes: &BTreeSet<&str>) -> Result<(), String> {
    let name = format!("{at}.name");
    is_name(&name, &container["name"], names::dns1123_label)?;
    if container["image"].as_str().is_none_or(str::is_empty) {
        return Err(format!("{at}.image: Required value"));
    }
    for (index, mount) in items(&container["volumeMounts"]).enumerate() {
        let at = format!("{at}.volumeMounts[{index}]");
        let name = mount["name"].as_str().unwrap_or_default();
        if !volumes.contains(name) {
            return Err(format!("{at}.name: Not found: {name:?}"));
        }
        if mount["mountPath"].as_str().is_none_or(str::is_empty) {
            return Err(format!("{at}.mountPath: Required value"));
        }
    }
    Ok(())
}

fn is_name(at: &str, name: &Value, rule: fn(&str) -> Vec<String>) -> Result<(), String> {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(format!("{at}: Required value"));
    }
    match rule(name).first() {
        Some(why) => Err(format!("{at}: Invalid value: {name:?}: {why}")),
        None => Ok(()),
    }
}

fn is_new<'a>(at: &str, name: &'a Value, known: &mut BTreeSet<&'a str>) -> Result<(), String> {
    let name = name.as_str().unwrap_or_default();
    if known.insert(name) {
        Ok(())
    } else {
        Err(format!("{at}: Duplicate value: {name:?}"))
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| {
            let all = items(&spec[list]).enumerate();
            all.map(move |(index, container)| (format!("spec.{list}[{index}]"), container))
        })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_needs_the_api_is_named() {
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
    fn what_cannot_be_run_is_refused_in_the_api_s_words() {
        let check = |change: fn(&mut Value), expected: &str| {
            let mut pod = json!({"metadata": {"name": "a", "namespace": "default"}, "spec": {
                "restartPolicy": "Always", "volumes": [{"name": "v"}],
                "containers": [{"name": "c", "image": "i",
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}});
            change(&mut pod);
            assert_eq!(check(&pod).err().unwrap_or_default(), expected);
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
