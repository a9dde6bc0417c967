//! Limit ranges: defaults and bounds for the resources of containers, pods and claims. The words are upstream's.

use serde_json::{Map, Value};

use crate::pod::resources::{Amounts, RequestsOrLimits, amounts, total};
use crate::quantity::Quantity;
use crate::tree::{at, list, list_mut, map, text};

/// On a pod: which of its amounts a limit range has set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Amounts up to this one are compared as thousandths: a thousand times it fits into an `i64`.
const MILLI_MAX: i64 = i64::MAX / 1000;

/// Sets the amounts that a pod's containers do not specify.
pub fn set_defaults(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for item in items(range, "Container") {
        let fields = |field: &str| map(item, field).clone();
        requests.extend(fields("defaultRequest"));
        limits.extend(fields("default"));
    }
    let mut set = Vec::new();
    for (field, what) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        for container in list_mut(&mut pod["spec"], field) {
            let name = text(container, "name").to_owned();
            for (amounts, defaults, which) in [
                ("requests", &requests, "request"),
                ("limits", &limits, "limit"),
            ] {
                let names = fill_in(container, amounts, defaults);
                if !names.is_empty() {
                    set.push(format!("{} {which} for {what} {name}", names.join(", ")));
                }
            }
        }
    }
    if !set.is_empty() {
        let words = format!("LimitRanger plugin set: {}", set.join("; "));
        pod["metadata"]["annotations"][ANNOTATION] = words.into();
    }
}

/// Fills in the missing amounts of a container, and returns their names in order.
fn fill_in(container: &mut Value, field: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let given = map(&container["resources"], field);
    let missing = defaults
        .iter()
        .filter(|(name, _)| !given.contains_key(*name));
    let missing: Vec<(String, Value)> = missing
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    let mut names: Vec<String> = missing.iter().map(|(name, _)| name.clone()).collect();
    for (name, amount) in missing {
        container["resources"][field][name] = amount;
    }
    names.sort();
    names
}

/// What of a pod is out of bounds.
pub fn check_pod(range: &Value, pod: &Value) -> Vec<String> {
    let spec = &pod["spec"];
    let mut errors = Vec::new();
    for item in items(range, "Container") {
        for field in ["containers", "initContainers"] {
            for container in list(spec, field) {
                let resources = &container["resources"];
                let used = Used {
                    requests: amounts(&resources["requests"]),
                    limits: amounts(&resources["limits"]),
                };
                used.check(&mut errors, "Container", item);
            }
        }
    }
    for item in items(range, "Pod") {
        let used = Used {
            requests: total(spec, RequestsOrLimits::Requests),
            limits: total(spec, RequestsOrLimits::Limits),
        };
        used.check(&mut errors, "Pod", item);
    }
    errors
}

/// What of a claim is out of bounds. Only its requests count.
pub fn check_claim(range: &Value, claim: &Value) -> Vec<String> {
    const TYPE: &str = "PersistentVolumeClaim";
    let used = Used {
        requests: amounts(at(claim, "spec.resources.requests")),
        limits: Amounts::new(),
    };
    let mut errors = Vec::new();
    for item in items(range, TYPE) {
        for (name, min) in amounts(&item["min"]) {
            errors.extend(used.below(TYPE, &name, min));
        }
        for (name, max) in amounts(&item["max"]) {
            let bound = format!("maximum {name} usage per {TYPE} is {max}");
            match used.requests.get(&name) {
                None => errors.push(format!("{bound}.  No request is specified")),
                Some(request) if exceeds(*request, max) => {
                    errors.push(format!("{bound}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
    errors
}

/// The items of a type.
fn items<'a>(range: &'a Value, kind: &'static str) -> impl Iterator<Item = &'a Value> {
    let items = list(range, "spec.limits").iter();
    items.filter(move |item| text(item, "type") == kind)
}

struct Used {
    requests: Amounts,
    limits: Amounts,
}

impl Used {
    fn check(&self, errors: &mut Vec<String>, kind: &str, item: &Value) {
        for (name, min) in amounts(&item["min"]) {
            errors.extend(self.below(kind, &name, min));
        }
        for (name, max) in amounts(&item["max"]) {
            errors.extend(self.above(kind, &name, max));
        }
        for (name, ratio) in amounts(&item["maxLimitRequestRatio"]) {
            errors.extend(self.beyond_ratio(kind, &name, ratio));
        }
    }

    fn below(&self, kind: &str, name: &str, min: Quantity) -> Option<String> {
        let bound = format!("minimum {name} usage per {kind} is {min}");
        let Some(request) = self.requests.get(name) else {
            return Some(format!("{bound}.  No request is specified"));
        };
        if exceeds(min, *request) {
            return Some(format!("{bound}, but request is {request}"));
        }
        let limit = self.limits.get(name)?;
        exceeds(min, *limit).then(|| format!("{bound}, but limit is {limit}"))
    }

    fn above(&self, kind: &str, name: &str, max: Quantity) -> Option<String> {
        let bound = format!("maximum {name} usage per {kind} is {max}");
        let Some(limit) = self.limits.get(name) else {
            return Some(format!("{bound}.  No limit is specified"));
        };
        if exceeds(*limit, max) {
            return Some(format!("{bound}, but limit is {limit}"));
        }
        let request = self.requests.get(name)?;
        exceeds(*request, max).then(|| format!("{bound}, but request is {request}"))
    }

    fn beyond_ratio(&self, kind: &str, name: &str, max: Quantity) -> Option<String> {
        let bound = format!("{name} max limit to request ratio per {kind} is {max}");
        let positive = |amounts: &Amounts| {
            let amount = amounts.get(name).copied();
            amount.filter(|amount| !amount.is_zero())
        };
        let Some(request) = positive(&self.requests) else {
            return Some(format!(
                "{bound}, but no request is specified or request is 0"
            ));
        };
        let Some(limit) = positive(&self.limits) else {
            return Some(format!("{bound}, but no limit is specified or limit is 0"));
        };
        let ratio = ratio(limit, request);
        (ratio > ratio_value(max)).then(|| format!("{bound}, but provided ratio is {ratio:.6}"))
    }
}

fn exceeds(amount: Quantity, bound: Quantity) -> bool {
    // To thousandths, as upstream compares.
    if amount.value() <= MILLI_MAX && bound.value() <= MILLI_MAX {
        return amount.milli_value() > bound.milli_value();
    }
    amount.value() > bound.value()
}

/// The quotient of two amounts.
#[expect(clippy::cast_precision_loss, reason = "upstream's ratio is a float")]
pub fn ratio(dividend: Quantity, divisor: Quantity) -> f64 {
    if dividend.value() <= MILLI_MAX && divisor.value() <= MILLI_MAX {
        return dividend.milli_value() as f64 / divisor.milli_value() as f64;
    }
    dividend.value() as f64 / divisor.value() as f64
}

/// An amount that is a ratio, as a number.
pub fn ratio_value(amount: Quantity) -> f64 {
    ratio(amount, Quantity::from_units(1, amount.format()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn range(kind: &str, item: Value) -> Value {
        let mut item = item;
        item["type"] = kind.into();
        json!({"spec": {"limits": [item]}})
    }

    fn pod(resources: Value) -> Value {
        let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "c"}]}});
        pod["spec"]["containers"][0]["resources"] = resources;
        pod
    }

    fn check(kind: &str, item: Value, resources: Value, expected: &[&str]) {
        let found = check_pod(&range(kind, item), &pod(resources));
        assert_eq!(found, expected);
    }

    #[test]
    fn defaults_fill_in_what_is_missing_and_say_so() {
        let range = range(
            "Container",
            json!({"default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}),
        );
        let mut changed = pod(json!({"limits": {"memory": "2Gi"}}));
        changed["spec"]["initContainers"] = json!([{"name": "i"}]);
        set_defaults(&range, &mut changed);
        let resources = &changed["spec"]["containers"][0]["resources"];
        assert_eq!(
            *resources,
            json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "2Gi"}})
        );
        let words = "LimitRanger plugin set: cpu request for container c; cpu limit for container c; \
            cpu request for init container i; cpu, memory limit for init container i";
        assert_eq!(changed["metadata"]["annotations"][ANNOTATION], words);
        let before = changed.clone();
        set_defaults(&range, &mut changed);
        assert_eq!(changed, before);
    }

    #[test]
    fn nothing_is_set_without_defaults() {
        let mut same = pod(json!({}));
        set_defaults(&range("Pod", json!({"max": {"cpu": "1"}})), &mut same);
        assert_eq!(same, pod(json!({})));
    }

    #[test]
    fn containers_stay_within_bounds() {
        let min = || json!({"min": {"cpu": "100m"}});
        let limits = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
        check("Container", min(), limits("100m"), &[]);
        check(
            "Container",
            min(),
            limits("50m"),
            &["minimum cpu usage per Container is 100m, but request is 50m"],
        );
        check(
            "Container",
            min(),
            json!({}),
            &["minimum cpu usage per Container is 100m.  No request is specified"],
        );
        let max = || json!({"max": {"cpu": "1"}});
        check("Container", max(), limits("1000m"), &[]);
        check(
            "Container",
            max(),
            limits("2"),
            &["maximum cpu usage per Container is 1, but limit is 2"],
        );
        check(
            "Container",
            max(),
            json!({"requests": {"cpu": "2"}}),
            &["maximum cpu usage per Container is 1.  No limit is specified"],
        );
    }

    #[test]
    fn pods_are_bounded_as_a_whole_and_ratios_are_exact() {
        let two = json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "3Gi"}});
        check(
            "Pod",
            json!({"max": {"memory": "2Gi"}, "maxLimitRequestRatio": {"memory": "2"}}),
            two.clone(),
            &[
                "maximum memory usage per Pod is 2Gi, but limit is 3Gi",
                "memory max limit to request ratio per Pod is 2, but provided ratio is 3.000000",
            ],
        );
        check(
            "Pod",
            json!({"maxLimitRequestRatio": {"memory": "3"}}),
            two,
            &[],
        );
        check(
            "Container",
            json!({"maxLimitRequestRatio": {"cpu": "1500m"}}),
            json!({"requests": {"cpu": "0"}}),
            &[
                "cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0",
            ],
        );
    }

    #[test]
    fn claims_are_bounded_by_their_requests() {
        let range = range(
            "PersistentVolumeClaim",
            json!({"min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}),
        );
        let check = |size: &str, expected: &[&str]| {
            let claim = json!({"spec": {"resources": {"requests": {"storage": size}}}});
            assert_eq!(check_claim(&range, &claim), expected);
        };
        check("1Gi", &[]);
        check(
            "512Mi",
            &["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"],
        );
        check(
            "3Gi",
            &["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"],
        );
    }
}
