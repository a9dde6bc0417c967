//! Pods that use more of the machine's disk than they were given.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Candidate, EVICTED};
use crate::pod::status::Verdict;
use crate::quantity::Quantity;

const STORAGE: &str = "ephemeral-storage";

/// Why a pod has to go for what it keeps on disk, if it does. `volumes` is what each of its emptyDirs takes, in
/// bytes; `split` says that the layers of containers are on another disk than all else.
pub fn exceeded(
    pod: &Value,
    volumes: &BTreeMap<String, u64>,
    used: &Candidate,
    split: bool,
) -> Option<Verdict> {
    let spec = &pod["spec"];
    let message = by_volume(spec, volumes)
        .or_else(|| by_pod(spec, used))
        .or_else(|| by_container(spec, used, split))?;
    Some(Verdict {
        reason: EVICTED.to_owned(),
        message,
    })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// More than a limit, if there is one and it is more than nothing.
fn is_over(used: u64, limit: &Value) -> Option<Quantity> {
    if limit.is_null() {
        return None;
    }
    let limit = Quantity::read(limit);
    let used = Quantity::from_units(i64::try_from(used).unwrap_or(i64::MAX), limit.format());
    (limit.sign() > 0 && used > limit).then_some(limit)
}

fn by_volume(spec: &Value, volumes: &BTreeMap<String, u64>) -> Option<String> {
    items(&spec["volumes"]).find_map(|volume| {
        let name = volume["name"].as_str()?;
        let limit = is_over(*volumes.get(name)?, &volume["emptyDir"]["sizeLimit"])?;
        Some(format!(
            "Usage of EmptyDir volume {name:?} exceeds the limit \"{limit}\". "
        ))
    })
}

fn by_pod(spec: &Value, used: &Candidate) -> Option<String> {
    let limits: Vec<Quantity> = items(&spec["containers"])
        .map(|container| &container["resources"]["limits"][STORAGE])
        .filter(|limit| !limit.is_null())
        .map(Quantity::read)
        .collect();
    let limit = limits.into_iter().reduce(|sum, one| sum + one)?;
    let containers = used.containers.as_ref()?.iter();
    let total = containers.map(|c| c.layer + c.logs).sum::<u64>() + used.volumes;
    let limit = is_over(total, &limit.to_string().into())?;
    Some(format!(
        "Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
    ))
}

fn by_container(spec: &Value, used: &Candidate, split: bool) -> Option<String> {
    used.containers.iter().flatten().find_map(|container| {
        let name = &container.name;
        let mut all = items(&spec["containers"]);
        let spec = all.find(|spec| spec["name"] == name.as_str())?;
        let used = container.logs + if split { 0 } else { container.layer };
        let limit = is_over(used, &spec["resources"]["limits"][STORAGE])?;
        Some(format!(
            "Container {name} exceeded its local ephemeral storage limit \"{limit}\". "
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pod::evict::ContainerUse;

    const MIB: u64 = 1 << 20;

    /// A pod with a volume of 1Mi, and containers that may use 2Mi and anything.
    fn check(volume: u64, layer: u64, logs: u64, split: bool, expected: &str) {
        let pod = json!({"spec": {
            "volumes": [{"name": "x", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "y", "emptyDir": {}}],
            "containers": [{"name": "a", "resources": {"limits": {STORAGE: "2Mi"}}}, {"name": "b"}]}});
        let volumes = BTreeMap::from([("x".to_owned(), volume), ("y".to_owned(), 1)]);
        let used = Candidate {
            containers: Some(vec![ContainerUse {
                name: "a".to_owned(),
                layer,
                logs,
                ..ContainerUse::default()
            }]),
            ..Candidate::default()
        };
        let verdict = exceeded(&pod, &volumes, &used, split);
        let message = verdict.map(|verdict| verdict.message).unwrap_or_default();
        assert_eq!(message, expected);
    }

    #[test]
    fn what_is_over_a_limit_is_named() {
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
            containers: Some(vec![ContainerUse {
                name: "a".to_owned(),
                layer: 3 * MIB,
                ..ContainerUse::default()
            }]),
            ..Candidate::default()
        };
        let message = "Container a exceeded its local ephemeral storage limit \"2Mi\". ";
        let verdict = exceeded(&pod, &BTreeMap::new(), &used, false);
        assert_eq!(verdict.unwrap().message, message);
        assert_eq!(exceeded(&pod, &BTreeMap::new(), &used, true), None);
    }
}
