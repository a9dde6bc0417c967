//! Preparation and validation of status writes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::aggregate::is_sidecar;
use super::annotations;
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::kinds::check::{form, id, label_name};
use crate::names;
use crate::tree;
use crate::tree::{list, number, text};

/// Copies everything but the status, labels and annotations from `old`, and keeps status fields that older
/// kubelets omit.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    tree::copy_from_old(new, old, "spec");
    tree::copy_from_old(new, old, "metadata.ownerReferences");
    tree::copy_from_old(new, old, "metadata.deletionTimestamp");
    tree::copy_from_old(new, old, "metadata.deletionGracePeriodSeconds");
    tree::copy_from_old(new, old, "metadata.generation");
    if tree::text(new, "status.qosClass").is_empty() {
        tree::copy_from_old(new, old, "status.qosClass");
    }
    if tree::number(new, "status.observedGeneration") == 0 {
        tree::copy_from_old(new, old, "status.observedGeneration");
    }
    keep_condition_generations(new, old);
}

/// Whether [`prepare`] keeps fields of the status that `new` leaves out.
pub(super) fn adds_fields(new: &Value, old: &Value) -> bool {
    let is_left_out = |path| number(new, path) == 0 && number(old, path) != 0;
    let of_type = |kind: &str| {
        let mut olds = tree::list(old, "status.conditions").iter();
        olds.any(|one| text(one, "type") == kind && number(one, "observedGeneration") != 0)
    };
    let mut conditions = tree::list(new, "status.conditions").iter();
    let lacks_class = text(new, "status.qosClass").is_empty();
    lacks_class && !text(old, "status.qosClass").is_empty()
        || is_left_out("status.observedGeneration")
        || conditions
            .any(|one| number(one, "observedGeneration") == 0 && of_type(text(one, "type")))
}

/// A type may occur several times: matches the old conditions in order.
fn keep_condition_generations(new: &mut Value, old: &Value) {
    let mut used = vec![false; tree::list(old, "status.conditions").len()];
    for condition in tree::list_mut(new, "status.conditions") {
        let olds = tree::list(old, "status.conditions");
        let kind = text(condition, "type").to_owned();
        let found = (0..olds.len()).find(|&i| !used[i] && text(&olds[i], "type") == kind);
        let Some(i) = found else { continue };
        used[i] = true;
        let before = number(&olds[i], "observedGeneration");
        if number(condition, "observedGeneration") == 0 && before != 0 {
            condition["observedGeneration"] = Value::from(before);
        }
    }
}

/// Validates the status of `new` after that of `old`.
pub(super) fn validate(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let (status, old_status) = (tree::at(new, "status"), tree::at(old, "status"));
    let spec = tree::at(old, "spec");
    let metadata = Path::new("metadata");
    let annotations_at = metadata.child("annotations");
    let (new_metadata, old_metadata) = (tree::at(new, "metadata"), tree::at(old, "metadata"));
    annotations::changes(&mut errors, new_metadata, old_metadata, &annotations_at);
    let any_cost = annotations::has_bad_cost(old_metadata);
    annotations::validate(&mut errors, new_metadata, spec, &annotations_at, any_cost);
    conditions(&mut errors, status, &metadata);
    let at = Path::new("status");
    let node = text(status, "nominatedNodeName");
    if !node.is_empty() && node != text(old_status, "nominatedNodeName") {
        let mistakes = names::dns1123_subdomain(node);
        form(&mut errors, &at, "nominatedNodeName", node, mistakes);
    }
    let class = text(status, "qosClass");
    if class != text(old_status, "qosClass") {
        let why = "field is immutable";
        errors.invalid(&at.child("qosClass"), class, why);
    }
    transitions(&mut errors, status, old_status, spec, &at);
    ips(&mut errors, status, "podIPs", &at);
    host_ips(&mut errors, status, &at);
    users(&mut errors, status, &at);
    errors
}

/// As upstream, errors of conditions have a path below `metadata`.
fn conditions(errors: &mut Errors, status: &Value, at: &Path) {
    for (i, condition) in list(status, "conditions").iter().enumerate() {
        let kind = text(condition, "type");
        if ["PodScheduled", "Ready", "Initialized"].contains(&kind) {
            continue;
        }
        label_name(errors, &at.child("conditions").index(i), "Type", kind);
    }
}

/// A container that terminated and does not restart stays terminated.
fn transitions(errors: &mut Errors, new: &Value, old: &Value, spec: &Value, at: &Path) {
    let policy = text(spec, "restartPolicy");
    for (field, kind) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", "ephemeralContainers"),
    ] {
        for (i, before) in list(old, field).iter().enumerate() {
            let name = text(before, "name");
            let container = list(spec, kind).iter().find(|c| text(c, "name") == name);
            if !is_over(before) || restarts(before, container, kind, policy) {
                continue;
            }
            let back = |after: &&Value| text(after, "name") == name && !is_over(after);
            for _ in list(new, field).iter().filter(back) {
                let why = "may not be transitioned to non-terminated state";
                errors.forbidden(&at.child(field).index(i).child("state"), why);
            }
        }
    }
}

fn is_over(status: &Value) -> bool {
    status
        .get("state")
        .is_some_and(|state| state.get("terminated").is_some())
}

fn restarts(status: &Value, container: Option<&Value>, kind: &str, pod_policy: &str) -> bool {
    if kind == "ephemeralContainers" {
        return false;
    }
    let has_rules = container.is_some_and(|c| !list(c, "restartPolicyRules").is_empty());
    if has_rules || kind == "initContainers" && container.is_some_and(is_sidecar) {
        return true;
    }
    let own = container.map_or("", |container| text(container, "restartPolicy"));
    match if own.is_empty() { pod_policy } else { own } {
        "Always" => true,
        "OnFailure" => number(&status["state"]["terminated"], "exitCode") != 0,
        _ => false,
    }
}

/// At most one address per family, and no duplicates.
fn ips(errors: &mut Errors, status: &Value, field: &'static str, at: &Path) {
    let at = at.child(field);
    let addresses: Vec<&str> = list(status, field)
        .iter()
        .map(|ip| text(ip, "ip"))
        .collect();
    for (i, address) in addresses.iter().enumerate() {
        errors.invalid_each(&at.index(i), address, names::ip(address));
    }
    if addresses.len() < 2 {
        return;
    }
    let shown = |address: &str| format!("{{\"IP\":{}}}", Value::from(address));
    if !is_dual_stack(&addresses) {
        let all: Vec<String> = addresses.iter().map(|address| shown(address)).collect();
        let why = "may specify no more than one IP for each IP family";
        errors.invalid_shown(&at, format!("[{}]", all.join(",")), why);
    }
    let mut seen = BTreeSet::new();
    for (i, address) in addresses.iter().enumerate() {
        if !seen.insert(address) {
            let shown = shown(address);
            errors.push(FieldError::duplicate_shown(&at.index(i), shown, ""));
        }
    }
}

fn is_dual_stack(addresses: &[&str]) -> bool {
    let family = |address: &str| address.parse::<IpAddr>().map(|ip| ip.is_ipv4()).ok();
    match addresses {
        [one, other] => match (family(one), family(other)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        },
        _ => false,
    }
}

fn host_ips(errors: &mut Errors, status: &Value, at: &Path) {
    let Some(first) = list(status, "hostIPs").first() else {
        return;
    };
    let first = text(first, "ip");
    if first != text(status, "hostIP") {
        let why = vec!["must be equal to `hostIP`".to_owned()];
        form(errors, &at.child("hostIPs").index(0), "ip", first, why);
    }
    ips(errors, status, "hostIPs", at);
}

fn users(errors: &mut Errors, status: &Value, at: &Path) {
    for field in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        for (i, container) in list(status, field).iter().enumerate() {
            let user = tree::at(container, "user.linux");
            if user.is_null() {
                continue;
            }
            let at = at.child(field).index(i).child("linux");
            id(errors, || at.child("uid"), number(user, "uid"));
            id(errors, || at.child("gid"), number(user, "gid"));
            for (g, group) in list(user, "supplementalGroups").iter().enumerate() {
                let group = group.as_i64().unwrap_or(0);
                id(errors, || at.child("supplementalGroups").index(g), group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn old() -> Value {
        json!({
            "metadata": {"name": "p", "ownerReferences": [{"uid": "u"}], "generation": 1},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
            "status": {"qosClass": "BestEffort", "observedGeneration": 1, "containerStatuses": [
                {"name": "c", "state": {"terminated": {"exitCode": 0}}}]},
        })
    }

    fn check(status: &Value, expected: &[&str]) {
        let mut new = json!({"metadata": {"name": "p"}, "status": status});
        prepare(&mut new, &old());
        let found: Vec<String> = validate(&new, &old())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected, "{new}");
    }

    #[test]
    fn reporters_may_leave_out_what_the_server_knows() {
        let mut new = json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}});
        prepare(&mut new, &old());
        assert_eq!(new["spec"], old()["spec"]);
        assert_eq!(new["metadata"]["ownerReferences"], json!([{"uid": "u"}]));
        assert_eq!(
            new["status"],
            json!({"phase": "Running", "qosClass": "BestEffort", "observedGeneration": 1})
        );
    }

    #[test]
    fn the_class_never_changes() {
        check(
            &json!({"qosClass": "Guaranteed"}),
            &["status.qosClass: Invalid value: \"Guaranteed\": field is immutable"],
        );
    }

    #[test]
    fn ended_containers_stay_ended() {
        check(
            &json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]}),
            &[
                "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state",
            ],
        );
    }

    #[test]
    fn addresses_are_one_per_family() {
        check(
            &json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}),
            &[],
        );
        check(
            &json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]}),
            &[
                "status.podIPs: Invalid value: [{\"IP\":\"10.0.0.1\"},{\"IP\":\"10.0.0.1\"}]: may specify no more than one IP for each IP family",
                "status.podIPs[1]: Duplicate value: {\"IP\":\"10.0.0.1\"}",
            ],
        );
        check(
            &json!({"hostIP": "10.0.0.2", "hostIPs": [{"ip": "10.0.0.1"}]}),
            &["status.hostIPs[0].ip: Invalid value: \"10.0.0.1\": must be equal to `hostIP`"],
        );
    }

    #[test]
    fn nominated_nodes_have_names() {
        let mut new = old();
        new["status"]["nominatedNodeName"] = json!("Not_OK");
        assert_eq!(validate(&new, &old())[0].field, "status.nominatedNodeName");
    }
}
