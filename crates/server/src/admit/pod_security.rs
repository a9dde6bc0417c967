//! Pod Security admission: the labels of a namespace say which pods it refuses, warns about and records in the audit
//! log. The rules are `kennel_core::pod_security`; the words are upstream's.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use kennel_core::pod_security::{self, Level, LevelVersion, Policy, evaluate};
use serde_json::Value;

use super::{Admission, Notes, Write, lookup, read};
use crate::audit_annotations::Annotations;
use crate::field::{FieldError, Path};
use crate::object;
use crate::registry::{self, Part};
use crate::status::{ApiError, Result};
use crate::tree::{list, map, text};

const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const ENFORCE_POLICY: &str = "pod-security.kubernetes.io/enforce-policy";
const AUDIT_VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";
const ERROR: &str = "pod-security.kubernetes.io/error";

/// How many existing pods a new policy is compared with, and for how long: upstream's bounds.
const PODS_MAX: usize = 3000;
const TIME_MAX: Duration = Duration::from_secs(1);

/// The admission of DaemonSets: their template is not refused, since the pods will be.
pub(crate) struct TemplateAdmission;

impl Admission for TemplateAdmission {
    fn validate(
        &self,
        write: Write<'_>,
        part: Part,
        new: &Value,
        _old: Option<&Value>,
        notes: &mut Notes,
    ) -> Result<()> {
        if part != Part::Main {
            return Ok(());
        }
        let template = &new["spec"]["template"];
        check(write, &template["metadata"], &template["spec"], None, notes)
    }
}

/// Checks a new pod, or one whose containers have changed.
pub(super) fn check_pod(
    write: Write<'_>,
    part: Part,
    pod: &Value,
    old: Option<&Value>,
    notes: &mut Notes,
) -> Result<()> {
    let is_ignored = matches!(part, Part::Status | Part::Binding);
    if is_ignored || old.is_some_and(|old| !is_significant(pod, old)) {
        return Ok(());
    }
    let name = text(pod, "metadata.name");
    check(write, &pod["metadata"], &pod["spec"], Some(name), notes)
}

/// Whether an update changes what the rules read: it adds a container or changes an image.
fn is_significant(new: &Value, old: &Value) -> bool {
    let fields = [
        "spec.containers",
        "spec.initContainers",
        "spec.ephemeralContainers",
    ];
    fields.iter().any(|field| {
        let (new, old) = (list(new, field), list(old, field));
        let image = |container: &Value| text(container, "image").to_owned();
        let names = |container: &Value| text(container, "name").to_owned();
        let before: BTreeMap<String, String> =
            old.iter().map(|one| (names(one), image(one))).collect();
        let mut new = new.iter();
        new.len() != old.len() || new.any(|one| before.get(&names(one)) != Some(&image(one)))
    })
}

/// Checks a pod, or a template: that has no name, and its level is not enforced.
fn check(
    write: Write<'_>,
    metadata: &Value,
    spec: &Value,
    pod: Option<&str>,
    notes: &mut Notes,
) -> Result<()> {
    let exemptions = &write.api.settings.pod_security;
    let name = write.namespace.unwrap_or_default();
    let exempt = exemptions.of_request(name, &write.user.name);
    let runtime_class = || exemptions.runtime_class(spec).then_some("runtimeClass");
    let Some(namespace) = lookup(write.api, "", "namespaces", None, name) else {
        return Ok(());
    };
    let (policy, errors) = pod_security::policy(|key| namespace.head.label(key));
    if exempt.is_none() && errors.is_empty() && policy.is_privileged() {
        if pod.is_some() {
            notes.audit.add(ENFORCE_POLICY, "privileged:latest");
        }
        return Ok(());
    }
    if let Some(why) = exempt.or_else(runtime_class) {
        notes.audit.add(EXEMPT, why);
        return Ok(());
    }
    let mut audit = Annotations::default();
    if !errors.is_empty() {
        let errors: Vec<String> = errors
            .iter()
            .map(|error| field_error(error).to_string())
            .collect();
        audit.add(
            ERROR,
            format!("Failed to parse policy: {}", aggregate(&errors)),
        );
    }
    let refused = pod.and_then(|name| {
        audit.add(ENFORCE_POLICY, policy.enforce.to_string());
        let violations = evaluate(policy.enforce, metadata, spec);
        let why = format!("violates PodSecurity \"{}\": {violations}", policy.enforce);
        (!violations.is_empty()).then(|| ApiError::forbidden(write.row, name, &why))
    });
    let would_violate = |at: LevelVersion| {
        let violations = evaluate(at, metadata, spec);
        (!violations.is_empty())
            .then(|| format!("would violate PodSecurity \"{at}\": {violations}"))
    };
    if let Some(words) = would_violate(policy.audit) {
        audit.add(AUDIT_VIOLATIONS, words);
    }
    if let Some(error) = refused {
        return Err(error.with_audit(audit));
    }
    notes.audit.extend(audit);
    notes.warnings.extend(would_violate(policy.warn));
    Ok(())
}

/// Several errors as one text, as upstream joins them.
fn aggregate(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn field_error(error: &pod_security::LabelError) -> FieldError {
    let path = Path::new("metadata").child("labels").key(error.label);
    FieldError::invalid(&path, &error.value, &error.to_string())
}

/// Checks the labels of a namespace, and warns about pods that a stricter level would refuse.
pub(super) fn check_namespace(
    write: Write<'_>,
    new: &Value,
    old: Option<&Value>,
    notes: &mut Notes,
) -> Result<()> {
    let name = text(new, "metadata.name");
    let (policy, errors) = policy_of(new);
    let before = old.map(policy_of);
    let unchanged = before.as_ref().is_some_and(|(_, before)| *before == errors);
    if !errors.is_empty() && !unchanged {
        let errors: Vec<FieldError> = errors.iter().map(field_error).collect();
        return Err(ApiError::invalid(write.row, name, &errors));
    }
    let checks_pods = before.is_none_or(|(before, _)| is_stricter(policy.enforce, before.enforce));
    if !checks_pods {
        return Ok(());
    }
    if write.api.settings.pod_security.namespace(name) {
        if !policy.is_privileged() {
            let ignored = policy.set_by(|key| map(new, "metadata.labels").get(key)?.as_str());
            notes.warnings.push(format!(
                "namespace \"{name}\" is exempt from Pod Security, and the policy ({ignored}) will be ignored"
            ));
        }
    } else if old.is_some() {
        warn_about_pods(write, name, policy.enforce, notes);
    }
    Ok(())
}

fn policy_of(namespace: &Value) -> (Policy, Vec<pod_security::LabelError>) {
    pod_security::policy(|key| map(namespace, "metadata.labels").get(key)?.as_str())
}

/// Whether the new policy may refuse pods that the old one allowed.
fn is_stricter(new: LevelVersion, old: LevelVersion) -> bool {
    new != old
        && new.level != Level::Privileged
        && (new.version != old.version || new.level > old.level)
}

/// Warns about existing pods, those with the same violations together.
fn warn_about_pods(write: Write<'_>, namespace: &str, enforce: LevelVersion, notes: &mut Notes) {
    let begin = Instant::now();
    let pods = pods_by_priority(write, namespace);
    // What is violated, with the first name and the number of the pods.
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut checked = 0;
    for pod in pods.iter().take(PODS_MAX) {
        checked += 1;
        let violations = evaluate(enforce, &pod["metadata"], &pod["spec"]);
        if !violations.is_empty() {
            let name = text(pod, "metadata.name").to_owned();
            let entry = found
                .entry(violations.reasons())
                .or_insert_with(|| (name.clone(), 0));
            entry.0 = name.min(std::mem::take(&mut entry.0));
            entry.1 += 1;
        }
        if begin.elapsed() > TIME_MAX {
            break;
        }
    }
    if checked < pods.len() {
        notes.warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {} existing pods",
            pods.len()
        ));
    }
    if found.is_empty() {
        return;
    }
    notes.warnings.push(format!(
        "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{enforce}\""
    ));
    let mut warnings: Vec<String> = found
        .into_iter()
        .map(|(reasons, (pod, count))| match count {
            1 => format!("{pod}: {reasons}"),
            2 => format!("{pod} (and 1 other pod): {reasons}"),
            _ => format!("{pod} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    warnings.sort();
    notes.warnings.extend(warnings);
}

/// The pods of a namespace: one of each controller first, so that the bounds hide as little as possible.
fn pods_by_priority(write: Write<'_>, namespace: &str) -> Vec<Value> {
    let exemptions = &write.api.settings.pod_security;
    let prefix = object::prefix(registry::core("pods"), Some(namespace));
    let records = write.api.store.range(&prefix, None, None).records;
    let mut controllers = HashSet::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for pod in records.iter().map(read) {
        if exemptions.runtime_class(&pod["spec"]) {
            continue;
        }
        let mut owners = list(&pod, "metadata.ownerReferences").iter();
        let controller = owners.find(|owner| owner["controller"] == true);
        let uid = controller.map(|owner| text(owner, "uid").to_owned());
        let is_first = uid.is_none_or(|uid| controllers.insert(uid));
        if is_first {
            first.push(pod);
        } else {
            others.push(pod);
        }
    }
    first.append(&mut others);
    first
}
