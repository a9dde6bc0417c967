//! Validates pod-level requests and limits against those of the containers.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::aggregate::container_requests;
use super::resources::{Claims, Scope, requirements};
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree::{list, map};

pub(super) fn pod_level(errors: &mut Errors, spec: &Value, at: &Path, claims: &Claims<'_>) {
    let Some(resources) = spec.get("resources") else {
        return;
    };
    let at = at.child("resources");
    if resources.get("claims").is_some() {
        let detail = "claims cannot be set for Resources at pod-level";
        errors.forbidden(&at.child("claims"), detail);
    }
    requirements(errors, resources, &at, Scope::Pod, claims);
    for (name, total) in container_requests(spec) {
        let pod = map(resources, "requests").get(&name);
        let pod = pod.map_or(Quantity::ZERO, Quantity::read);
        if total > pod {
            let detail =
                format!("must be greater than or equal to aggregate container requests of {total}");
            errors.invalid(&at.child("requests").key(&name), pod.to_string(), &detail);
        }
    }
    container_limits(errors, spec, resources, &at);
}

fn container_limits(errors: &mut Errors, spec: &Value, resources: &Value, at: &Path) {
    for (i, container) in list(spec, "containers").iter().enumerate() {
        for (name, limit) in map(container, "resources.limits") {
            let pod = map(resources, "limits").get(name);
            let (Some(pod), limit) = (pod.map(Quantity::read), Quantity::read(limit)) else {
                continue;
            };
            if limit > pod {
                let at = at.child("containers").index(i).key(name).child("limits");
                let detail = format!("must be less than or equal to pod limits of {pod}");
                errors.invalid(&at, limit.to_string(), &detail);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::check;

    #[test]
    fn a_pod_asks_for_no_less_than_its_containers() {
        let spec = json!({
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "1"}}},
                {"name": "b", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "3"}}},
            ],
        });
        let mut errors = Errors::new();
        pod_level(&mut errors, &spec, &Path::new("spec"), &Claims::default());
        check(
            &errors,
            &[
                "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 1500m",
                "spec.resources.containers[1][cpu].limits: Invalid value: \"3\": must be less than or equal to pod limits of 2",
            ],
        );
    }
}
