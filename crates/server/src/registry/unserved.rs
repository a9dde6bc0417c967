//! What to tell users who ask for a resource that the server does not have: what it has instead.

use kennel_core::why::closest;

use super::{POSTED, RESOURCES, api_version, qualified};

/// Resources of Kubernetes that users and charts expect, and what to do without them.
const ELSEWHERE: [(&[&str], &str); 5] = [
    (
        &[
            "deployments",
            "replicasets",
            "replicationcontrollers",
            "statefulsets",
        ],
        "Kennel runs DaemonSets, one pod on each node, and single Pods; \
         docs/guides/daemonsets.md shows how to make a DaemonSet of a Deployment",
    ),
    (
        &["cronjobs", "jobs"],
        "Kennel runs DaemonSets and single Pods; a Pod with restartPolicy Never or OnFailure runs to its end",
    ),
    (
        &["ingressclasses", "ingresses"],
        "Kennel has no Ingress; daemons are reached at their nodes, with hostPort or hostNetwork",
    ),
    (
        &["horizontalpodautoscalers", "verticalpodautoscalers"],
        "a DaemonSet has one pod on each node, so that there is nothing to scale",
    ),
    (
        &["customresourcedefinitions"],
        "Kennel has no custom resources; docs/reference/api.md lists the resources that it has",
    ),
];

/// What there is instead of a resource that is not served; `None` if nothing is known.
pub(crate) fn instead(group: &str, version: &str, plural: &str) -> Option<String> {
    let mut elsewhere = ELSEWHERE.iter();
    if let Some((_, words)) = elsewhere.find(|(plurals, _)| plurals.contains(&plural)) {
        return Some((*words).to_owned());
    }
    let stored = RESOURCES
        .iter()
        .map(|row| (row.plural, row.group, row.version));
    let posted = POSTED
        .iter()
        .map(|row| (row.plural, row.group, row.version));
    let served: Vec<_> = stored.chain(posted).collect();
    let of_name = served.iter().filter(|served| served.0 == plural);
    let versions: Vec<String> = of_name
        .map(|(_, group, version)| api_version(group, version))
        .collect();
    if versions.contains(&api_version(group, version)) {
        return None;
    }
    if !versions.is_empty() {
        return Some(format!("{plural} are served as {}", versions.join(" and ")));
    }
    let close = closest(plural, served.iter().map(|served| served.0))?;
    let (name, group, _) = served.iter().find(|served| served.0 == close)?;
    Some(format!("did you mean {}?", qualified(name, group)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(group: &str, version: &str, plural: &str, expected: Option<&str>) {
        let words = instead(group, version, plural);
        assert_eq!(words.as_deref(), expected, "{group}/{version} {plural}");
    }

    #[test]
    fn other_versions_and_misspellings_lead_to_what_is_served() {
        check(
            "extensions",
            "v1beta1",
            "daemonsets",
            Some("daemonsets are served as apps/v1"),
        );
        let both = "events are served as v1 and events.k8s.io/v1";
        check("events.k8s.io", "v1beta1", "events", Some(both));
        check(
            "apps",
            "v1",
            "deamonsets",
            Some("did you mean daemonsets.apps?"),
        );
        check("", "v1", "widgets", None);
        // Served, but not at a path of this form.
        check("", "v1", "nodes", None);
    }

    #[test]
    fn kinds_of_kubernetes_that_kennel_does_not_have_are_known() {
        let words = instead("batch", "v1", "jobs").unwrap();
        assert!(words.contains("runs to its end"), "{words}");
        let words = instead("apps", "v1", "deployments").unwrap();
        assert!(words.contains("docs/guides/daemonsets.md"), "{words}");
        for (plurals, _) in ELSEWHERE {
            for plural in plurals {
                assert!(
                    RESOURCES.iter().all(|row| row.plural != *plural),
                    "{plural}"
                );
            }
        }
    }
}
