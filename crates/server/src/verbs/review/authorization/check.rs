//! Validation of access reviews, with upstream's wording.

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::registry::Subject;
use crate::tree::{at, has, is_empty, list, map, text};

pub(super) fn review(subject: Subject, review: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = at(review, "spec");
    check_spec(&mut errors, spec);
    if subject != Subject::Caller
        && text(spec, "user").is_empty()
        && list(spec, "groups").is_empty()
    {
        let words = "at least one of user or group must be specified";
        errors.invalid(&Path::new("spec.user"), "", words);
    }
    check_selectors(&mut errors, at(spec, "resourceAttributes"));
    check_metadata(&mut errors, subject, review);
    if subject == Subject::InNamespace {
        check_local(&mut errors, spec, text(review, "metadata.namespace"));
    }
    errors
}

fn check_spec(errors: &mut Errors, spec: &Value) {
    let paths = at(spec, "nonResourceAttributes");
    match (has(spec, "resourceAttributes"), !paths.is_null()) {
        (true, true) => {
            let words = "cannot be specified in combination with resourceAttributes";
            errors.invalid(&Path::new("spec.nonResourceAttributes"), paths, words);
        }
        (false, false) => {
            let words =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.invalid(&Path::new("spec.resourceAttributes"), Value::Null, words);
        }
        _ => {}
    }
}

/// A review is not stored, so it has no metadata.
fn check_metadata(errors: &mut Errors, subject: Subject, review: &Value) {
    let local = subject == Subject::InNamespace;
    let given = map(review, "metadata").iter().any(|(field, value)| {
        let may_be = field == "managedFields" || (local && field == "namespace");
        !may_be && !is_empty(value)
    });
    let words = if local {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };
    if given {
        errors.invalid(&Path::new("metadata"), at(review, "metadata"), words);
    }
}

fn check_local(errors: &mut Errors, spec: &Value, namespace: &str) {
    let asked = text(spec, "resourceAttributes.namespace");
    if has(spec, "resourceAttributes") && asked != namespace {
        let path = Path::new("spec.resourceAttributes.namespace");
        errors.invalid(&path, asked, "must match metadata.namespace");
    }
    if has(spec, "nonResourceAttributes") {
        let path = Path::new("spec.nonResourceAttributes");
        let words = "disallowed on this kind of request";
        errors.invalid(&path, at(spec, "nonResourceAttributes"), words);
    }
}

fn check_selectors(errors: &mut Errors, asked: &Value) {
    for field in ["fieldSelector", "labelSelector"] {
        let selector = at(asked, field);
        if selector.is_null() {
            continue;
        }
        let path = Path::new("spec.resourceAttributes").child(field);
        let raw = text(selector, "rawSelector");
        let has_requirements = !list(selector, "requirements").is_empty();
        if !raw.is_empty() && has_requirements {
            let words = "may not specified at the same time as requirements";
            errors.invalid(&path.child("rawSelector"), raw, words);
        }
        if raw.is_empty() && !has_requirements {
            let words =
                format!("when {path} is specified, requirements or rawSelector is required");
            errors.required(&path.child("requirements"), &words);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(subject: Subject, spec: Value, metadata: Value, expected: &[&str]) {
        let fields = [("metadata", metadata), ("spec", spec)];
        let object = Value::from_iter(fields.map(|(field, value)| (field.to_owned(), value)));
        let shown: Vec<String> = review(subject, &object)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, expected, "{object}");
    }

    #[test]
    fn a_review_asks_one_thing_about_somebody() {
        let (pods, path) = (json!({"resource": "pods"}), json!({"path": "/x"}));
        let all = Subject::Any;
        let own = Subject::Caller;
        check(
            all,
            json!({"user": "a", "resourceAttributes": pods}),
            json!({}),
            &[],
        );
        check(
            all,
            json!({"groups": ["a"], "nonResourceAttributes": path}),
            json!(null),
            &[],
        );
        check(
            own,
            json!({"resourceAttributes": pods}),
            json!({"creationTimestamp": null}),
            &[],
        );
        check(
            all,
            json!({"resourceAttributes": pods, "nonResourceAttributes": path}),
            json!({"name": "x"}),
            &[
                "spec.nonResourceAttributes: Invalid value: {\"path\":\"/x\"}: cannot be specified in \
                 combination with resourceAttributes",
                "spec.user: Invalid value: \"\": at least one of user or group must be specified",
                "metadata: Invalid value: {\"name\":\"x\"}: must be empty",
            ],
        );
        check(
            own,
            json!({}),
            json!({}),
            &[
                "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or \
                 resourceAttributes must be specified",
            ],
        );
    }

    #[test]
    fn a_local_review_stays_in_its_namespace() {
        let local = Subject::InNamespace;
        let here = json!({"namespace": "here"});
        let asked =
            |namespace: &str| json!({"user": "a", "resourceAttributes": {"namespace": namespace}});
        check(local, asked("here"), here.clone(), &[]);
        check(
            local,
            asked("there"),
            here.clone(),
            &[
                "spec.resourceAttributes.namespace: Invalid value: \"there\": must match \
                 metadata.namespace",
            ],
        );
        check(
            local,
            json!({"user": "a", "nonResourceAttributes": {"path": "/"}}),
            here,
            &[
                "spec.nonResourceAttributes: Invalid value: {\"path\":\"/\"}: disallowed on this kind of \
                 request",
            ],
        );
    }

    #[test]
    fn selectors_say_something_in_one_way() {
        let asked = |selector: Value| json!({"resourceAttributes": {"fieldSelector": selector}});
        let own = Subject::Caller;
        check(own, asked(json!({"rawSelector": "a=b"})), json!({}), &[]);
        check(
            own,
            asked(json!({})),
            json!({}),
            &[
                "spec.resourceAttributes.fieldSelector.requirements: Required value: when \
                 spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
            ],
        );
        check(
            own,
            asked(
                json!({"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}),
            ),
            json!({}),
            &[
                "spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: \"a=b\": may not \
                 specified at the same time as requirements",
            ],
        );
    }
}
