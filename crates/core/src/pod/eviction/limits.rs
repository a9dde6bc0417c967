//! Pods that exceed their limits of local ephemeral storage.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Candidate, evicted};
use crate::pod::status::PodFailure;
use crate::quantity::Quantity;

const STORAGE: &str = "ephemeral-storage";

/// The eviction of a pod that exceeds a limit. `volumes` is the size of each of its emptyDirs in bytes;
/// `split` says that the writable layers of containers are on another disk than everything else.
pub fn storage_limit_exceeded(
    pod: &Value,
    volumes: &BTreeMap<String, u64>,
    used: &Candidate,
    split: bool,
) -> Option<PodFailure> {
    let spec = &pod["spec"];
    let message = volume_message(spec, volumes)
        .or_else(|| pod_message(spec, used))
        .or_else(|| container_message(spec, used, split))?;
    Some(evicted(message))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The limit, if there is a positive one and it is exceeded.
fn exceeded(used: u64, limit: &Value) -> Option<Quantity> {
    if limit.is_null() {
        return None;
    }
    let limit = Quantity::read(limit);
    let used = Quantity::from_units(i64::try_from(used).unwrap_or(i64::MAX), limit.format());
    (limit.sign() > 0 && used > limit).then_some(limit)
}

fn volume_message(spec: &Value, volumes: &BTreeMap<String, u64>) -> Option<String> {
    items(&spec["volumes"]).find_map(|volume| {
        let name = volume["name"].as_str()?;
        let limit = exceeded(*volumes.get(name)?, &volume["emptyDir"]["sizeLimit"])?;
        Some(format!(
            "Usage of EmptyDir volume {name:?} exceeds the limit \"{limit}\". "
        ))
    })
}

fn pod_message(spec: &Value, used: &Candidate) -> Option<String> {
    let limits: Vec<Quantity> = items(&spec["containers"])
        .map(|container| &container["resources"]["limits"][STORAGE])
        .filter(|limit| !limit.is_null())
        .map(Quantity::read)
        .collect();
    let limit = limits.into_iter().reduce(|sum, one| sum + one)?;
    let containers = used.containers.as_ref()?.iter();
    let total = containers.map(|c| c.layer + c.logs).sum::<u64>() + used.volumes;
    let limit = exceeded(total, &limit.to_string().into())?;
    Some(format!(
        "Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
    ))
}

fn container_message(spec: &Value, used: &Candidate, split: bool) -> Option<String> {
    used.containers.iter().flatten().find_map(|container| {
        let name = &container.name;
        let mut all = items(&spec["containers"]);
        let spec = all.find(|spec| spec["name"] == name.as_str())?;
        let used = container.logs + if split { 0 } else { container.layer };
        let limit = exceeded(used, &spec["resources"]["limits"][STORAGE])?;
        Some(format!(
            "Container {name} exceeded its local ephemeral storage limit \"{limit}\". "
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pod::eviction::ContainerUsage;

    const MIB: u64 = 1 << 20;

    /// A pod with a volume of 1Mi, a container with a limit of 2Mi and one without limits.
    fn check(volume: u64, layer: u64, logs: u64, split: bool, expected: &str) {
        let pod = json!({"spec": {
            "volumes": [{"name": "x", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "y", "emptyDir": {}}],
            "containers": [{"name": "a", "resources": {"limits": {STORAGE: "2Mi"}}}, {"name": "b"}]}});
        let volumes = BTreeMap::from([("x".to_owned(), volume), ("y".to_owned(), 1)]);
        let used = Candidate {
            containers: Some(vec![ContainerUsage {
                name: "a".to_owned(),
                layer,
                logs,
                ..ContainerUsage::default()
            }]),
            ..Candidate::default()
        };
        let failure = storage_limit_exceeded(&pod, &volumes, &used, split);
        let message = failure.map(|failure| failure.message).unwrap_or_default();
        assert_eq!(message, expected);
    }

    #[test]
    fn the_exceeded_limit_is_named() {
        check(MIB, MIB, MIB, false, "");
        check(
            MIB + 1,
            0,
            0,
            false,
            "Usage of EmptyDir volume \"x\" exceeds the limit \"1Mi\". ",
        );
        check(
            0,
            2 * MIB,
            1,
            false,
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ",
        );
    }

    #[test]
    fn a_container_has_a_limit_of_its_own() {
        let limit = |size: &str| json!({"resources": {"limits": {STORAGE: size}}});
        let mut containers = vec![limit("2Mi"), limit("8Mi")];
        containers[0]["name"] = "a".into();
        containers[1]["name"] = "b".into();
        let pod = json!({"spec": {"containers": containers}});
        let used = Candidate {
            containers: Some(vec![ContainerUsage {
                name: "a".to_owned(),
                layer: 3 * MIB,
                ..ContainerUsage::default()
            }]),
            ..Candidate::default()
        };
        let message = "Container a exceeded its local ephemeral storage limit \"2Mi\". ";
        let failure = storage_limit_exceeded(&pod, &BTreeMap::new(), &used, false);
        assert_eq!(failure.unwrap().message, message);
        assert_eq!(
            storage_limit_exceeded(&pod, &BTreeMap::new(), &used, true),
            None
        );
    }
}
