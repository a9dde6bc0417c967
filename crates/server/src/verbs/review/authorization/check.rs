//! Validation of access reviews, with upstream's wording.

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::registry::Subject;
use crate::tree::{at, has, is_empty, list, map, text};

pub(super) fn review(subject: Subject, review: &Value) -> Errors {
    let spec = at(review, "spec");
    let mut errors = Vec::from_iter(spec_error(spec));
    if subject != Subject::Caller {
        errors.extend(subject_error(spec));
    }
    errors.extend(selector_errors(at(spec, "resourceAttributes")));
    errors.extend(metadata_error(subject, review));
    if subject == Subject::InNamespace {
        errors.extend(local_errors(spec, text(review, "metadata.namespace")));
    }
    errors
}

fn spec_error(spec: &Value) -> Option<FieldError> {
    let path = Path::new("spec");
    match (
        has(spec, "resourceAttributes"),
        has(spec, "nonResourceAttributes"),
    ) {
        (true, true) => {
            let words = "cannot be specified in combination with resourceAttributes";
            let path = path.child("nonResourceAttributes");
            Some(FieldError::invalid(
                &path,
                at(spec, "nonResourceAttributes"),
                words,
            ))
        }
        (false, false) => {
            let words =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Some(FieldError::invalid(
                &path.child("resourceAttributes"),
                &Value::Null,
                words,
            ))
        }
        _ => None,
    }
}

fn subject_error(spec: &Value) -> Option<FieldError> {
    if !text(spec, "user").is_empty() || !list(spec, "groups").is_empty() {
        return None;
    }
    let words = "at least one of user or group must be specified";
    let path = Path::new("spec").child("user");
    Some(FieldError::invalid(&path, "", words))
}

/// A review is not stored, so it has no metadata.
fn metadata_error(subject: Subject, review: &Value) -> Option<FieldError> {
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
    let metadata = at(review, "metadata");
    given.then(|| FieldError::invalid(&Path::new("metadata"), metadata, words))
}

fn local_errors(spec: &Value, namespace: &str) -> Errors {
    let mut errors = Errors::new();
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
    errors
}

fn selector_errors(asked: &Value) -> Errors {
    let mut errors = Errors::new();
    for field in ["fieldSelector", "labelSelector"] {
        let selector = at(asked, field);
        if selector.is_null() {
            continue;
        }
        let path = Path::new("spec.resourceAttributes").child(field);
        let (raw, requirements) = (
            text(selector, "rawSelector"),
            list(selector, "requirements"),
        );
        if !raw.is_empty() && !requirements.is_empty() {
            let words = "may not specified at the same time as requirements";
            errors.invalid(&path.child("rawSelector"), raw, words);
        }
        if raw.is_empty() && requirements.is_empty() {
            let words =
                format!("when {path} is specified, requirements or rawSelector is required");
            errors.required(&path.child("requirements"), &words);
        }
    }
    errors
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
