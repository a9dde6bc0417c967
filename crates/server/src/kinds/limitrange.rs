//! The strategy of `LimitRange`.

use std::collections::BTreeSet;

use kennel_core::limit_range::{ratio, ratio_value};
use kennel_core::quantity::{Format, Quantity};
use serde_json::{Map, Value};

use super::Strategy;
use super::check::each;
use super::pod::resources;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{at, list_mut, map, text};

const TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];
const POD: &str = "may not be specified when `type` is 'Pod'";

#[derive(Debug)]
pub struct LimitRange;

impl Strategy for LimitRange {
    fn default(&self, object: &mut Value) {
        for item in list_mut(object, "spec.limits") {
            if text(item, "type") == "Container" {
                default_item(item);
            }
        }
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let mut seen = BTreeSet::new();
        for (item, path) in each(at(object, "spec"), &Path::new("spec"), "limits") {
            let kind = text(item, "type");
            check_type(&mut errors, kind, &path.child("type"));
            if !seen.insert(kind) {
                errors.duplicate(&path.child("type"), kind);
            }
            check_item(&mut errors, kind, item, &path);
        }
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Errors {
        self.validate_create(new)
    }
}

/// The default limit is the maximum, the default request the default limit or the minimum.
fn default_item(item: &mut Value) {
    let fields = |item: &Value, field: &str| map(item, field).clone();
    let mut limits = fields(item, "max");
    limits.extend(fields(item, "default"));
    let mut requests = fields(item, "min");
    requests.extend(limits.clone());
    requests.extend(fields(item, "defaultRequest"));
    let mut put = |field: &str, amounts: Map<String, Value>| {
        if !amounts.is_empty() {
            item[field] = amounts.into();
        }
    };
    put("default", limits);
    put("defaultRequest", requests);
}

fn check_type(errors: &mut Errors, kind: &str, path: &Path) {
    let before = errors.len();
    errors.invalid_each(path, kind, names::qualified_name(kind));
    if errors.len() == before && !kind.contains('/') && !TYPES.contains(&kind) {
        let words = "must be a standard limit type or fully qualified";
        errors.invalid(path, kind, words);
    }
}

fn check_item(errors: &mut Errors, kind: &str, item: &Value, path: &Path) {
    let check_names = |errors: &mut Errors, field: &'static str| {
        for name in map(item, field).keys() {
            let at = path.child(field).key(name);
            match kind {
                "Pod" | "Container" => resources::container_resource_name(errors, name, &at),
                _ => resources::standard_name(errors, name, &at),
            }
        }
    };
    check_names(errors, "max");
    check_names(errors, "min");
    for field in ["default", "defaultRequest"] {
        if kind != "Pod" {
            check_names(errors, field);
        } else if !map(item, field).is_empty() {
            errors.forbidden(&path.child(field), POD);
        }
    }
    let bounds_storage = ["min", "max"].map(|field| map(item, field).contains_key("storage"));
    if kind == "PersistentVolumeClaim" && bounds_storage == [false, false] {
        let words = "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&path.child("limits"), words);
    }
    check_names(errors, "maxLimitRequestRatio");
    let fields = [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ];
    let names: BTreeSet<&String> = fields.iter().flat_map(|f| map(item, f).keys()).collect();
    for name in names {
        let mut bounds = Bounds::of(item, name);
        if kind == "Pod" {
            (bounds.default, bounds.request) = (None, None);
        }
        bounds.check(errors, name, path);
    }
}

/// What an item says about one resource.
struct Bounds {
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

impl Bounds {
    fn of(item: &Value, name: &str) -> Self {
        let amount = |field| map(item, field).get(name).map(Quantity::read);
        Self {
            min: amount("min"),
            max: amount("max"),
            default: amount("default"),
            request: amount("defaultRequest"),
            ratio: amount("maxLimitRequestRatio"),
        }
    }

    fn check(&self, errors: &mut Errors, name: &str, path: &Path) {
        let (min, max) = (("min", self.min), ("max", self.max));
        let limit = self.default;
        let request = ("default request", self.request);
        // The field to report, the value to show, and two amounts of which the first must not be larger.
        let rules = [
            ("min", self.min, min, max),
            ("defaultRequest", self.request, min, request),
            ("defaultRequest", self.request, request, max),
            (
                "defaultRequest",
                self.request,
                request,
                ("default limit", limit),
            ),
            ("default", self.min, min, ("default", limit)),
            ("default", self.max, ("default", limit), max),
        ];
        for (field, shown, (small_name, small), (large_name, large)) in rules {
            if let (Some(shown), Some(small), Some(large)) = (shown, small, large)
                && small > large
            {
                let words = format!(
                    "{small_name} value {small} is greater than {large_name} value {large}"
                );
                let at = path.child(field).key(name);
                errors.invalid(&at, shown.to_string(), &words);
            }
        }
        self.check_ratio(errors, name, path);
        if let (Some(limit), Some(request)) = (limit, self.request)
            && limit != request
            && !resources::is_overcommittable(name)
        {
            let words = format!(
                "default value {limit} must equal to defaultRequest value {request} in {name}"
            );
            let at = path.child("defaultRequest").key(name);
            errors.invalid(&at, request.to_string(), &words);
        }
    }

    fn check_ratio(&self, errors: &mut Errors, name: &str, path: &Path) {
        let Some(given) = self.ratio else { return };
        let at = path.child("maxLimitRequestRatio").key(name);
        if given < Quantity::from_units(1, Format::DecimalSi) {
            let words = format!("ratio {given} is less than 1");
            errors.invalid(&at, given.to_string(), &words);
        }
        if let (Some(min), Some(max)) = (self.min, self.max) {
            let most = ratio(max, min);
            if ratio_value(given) > most {
                let words = format!("ratio {given} is greater than max/min = {most:.6}");
                errors.invalid(&at, given.to_string(), &words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{check_create, created};
    use super::*;

    fn range(kind: &str, item: &Value) -> Value {
        let mut item = item.clone();
        item["type"] = kind.into();
        json!({"metadata": {"name": "l", "namespace": "d"}, "spec": {"limits": [item]}})
    }

    #[test]
    fn defaults_come_from_the_bounds() {
        let given = json!({"max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Gi"}});
        let made = created(&LimitRange, &range("Container", &given));
        let item = &made["spec"]["limits"][0];
        assert_eq!(item["default"], json!({"cpu": "2"}));
        assert_eq!(item["defaultRequest"], json!({"cpu": "2", "memory": "1Gi"}));
        let made = created(&LimitRange, &range("Pod", &given));
        assert_eq!(made["spec"]["limits"][0]["default"], Value::Null);
    }

    #[test]
    fn bounds_are_in_order() {
        let check = |kind: &str, item: Value, expected: &[&str]| {
            check_create(&LimitRange, &range(kind, &item), expected);
        };
        check(
            "Container",
            json!({"min": {"cpu": "1"}, "max": {"cpu": "2"}}),
            &[],
        );
        check(
            "Pod",
            json!({"min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"}}),
            &[
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
            ],
        );
        check(
            "Container",
            json!({"max": {"memory": "1Gi"}, "defaultRequest": {"memory": "2Gi"}}),
            &[
                "spec.limits[0].defaultRequest[memory]: Invalid value: \"2Gi\": default request value 2Gi is greater than max value 1Gi",
                "spec.limits[0].defaultRequest[memory]: Invalid value: \"2Gi\": default request value 2Gi is greater than default limit value 1Gi",
            ],
        );
        check(
            "Pod",
            json!({"maxLimitRequestRatio": {"cpu": "500m"}}),
            &[
                "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less than 1",
            ],
        );
        check(
            "Pod",
            json!({"min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}}),
            &[
                "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"3\": ratio 3 is greater than max/min = 2.000000",
            ],
        );
        check(
            "PersistentVolumeClaim",
            json!({}),
            &[
                "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
            ],
        );
        check(
            "Machine",
            json!({}),
            &[
                "spec.limits[0].type: Invalid value: \"Machine\": must be a standard limit type or fully qualified",
            ],
        );
    }
}
