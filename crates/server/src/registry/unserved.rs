//! What to tell users who ask for a resource that the server does not have: what it has instead.

use kennel_core::why::closest;

use super::{CREATE_ONLY, MEASURED, RESOURCES, api_version, qualified};

/// Resources that users and charts expect, and that the server does not have.
#[derive(Clone, Copy, Debug)]
pub struct Unserved {
    pub plurals: &'static [&'static str],
    /// What to do without them.
    pub instead: &'static str,
}

/// Resources that users and charts expect, of Kubernetes and of others. `docs/reference/api.md` lists them too, because
/// kubectl and Helm ask discovery first and then say no more than "no matches for kind".
pub const UNSERVED: &[Unserved] = &[
    Unserved {
        plurals: &[
            "deployments",
            "replicasets",
            "replicationcontrollers",
            "statefulsets",
        ],
        instead: "Kennel runs DaemonSets, one pod on each node, and single Pods; \
            docs/guides/daemonsets.md shows how to make a DaemonSet of a Deployment",
    },
    Unserved {
        plurals: &["cronjobs", "jobs"],
        instead: "Kennel runs DaemonSets and single Pods; a Pod with restartPolicy Never or OnFailure runs to its end",
    },
    Unserved {
        plurals: &[
            "gatewayclasses",
            "gateways",
            "grpcroutes",
            "httproutes",
            "ingressclasses",
            "ingresses",
            "tcproutes",
            "tlsroutes",
            "udproutes",
        ],
        instead: "Kennel has no Ingress and no Gateway; docs/guides/reach-a-daemon.md shows how daemons are reached: \
            by Services, node ports, host ports and names",
    },
    Unserved {
        plurals: &["horizontalpodautoscalers"],
        instead: "a DaemonSet has one pod on each node, so that there is nothing to scale",
    },
    Unserved {
        plurals: &["verticalpodautoscalers"],
        instead: "Kennel has no custom resources; requests and limits are those of the DaemonSet's template",
    },
    Unserved {
        plurals: &[
            "alertmanagerconfigs",
            "alertmanagers",
            "podmonitors",
            "probes",
            "prometheusagents",
            "prometheuses",
            "prometheusrules",
            "scrapeconfigs",
            "servicemonitors",
            "thanosrulers",
        ],
        instead: "Kennel has no custom resources, so the Prometheus operator cannot run: leave them out with the chart's \
            values, and let Prometheus find pods and endpoints by kubernetes_sd_configs",
    },
    Unserved {
        plurals: &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
        instead: "Kennel calls no webhooks and evaluates no admission policies; docs/reference/admission.md has what it admits",
    },
    Unserved {
        plurals: &["apiservices"],
        instead: "Kennel passes no requests on to other API servers; it serves metrics.k8s.io itself",
    },
    Unserved {
        plurals: &["customresourcedefinitions"],
        instead: "Kennel has no custom resources, and helm install --skip-crds leaves out those of a chart; \
            docs/reference/api.md lists the resources that it has",
    },
    Unserved {
        plurals: &["podsecuritypolicies", "securitycontextconstraints"],
        instead: "labels of the namespace say which pods it may run; docs/guides/limit-a-namespace.md shows how",
    },
    Unserved {
        plurals: &["flowschemas", "prioritylevelconfigurations"],
        instead: "Kennel's limits for requests in flight are fixed; docs/reference/limits.md has them",
    },
    Unserved {
        plurals: &[
            "csistoragecapacities",
            "volumeattachments",
            "volumeattributesclasses",
            "volumesnapshotclasses",
            "volumesnapshotcontents",
            "volumesnapshots",
        ],
        instead: "Kennel attaches no persistent volumes; docs/reference/what-pods-get.md lists the volumes that pods can have",
    },
    Unserved {
        plurals: &[
            "deviceclasses",
            "devicetaintrules",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
        ],
        instead: "Kennel has no dynamic resource allocation; \
            privileged pods see the devices of their node, as those of examples/per-hardware/ssd.yaml",
    },
    Unserved {
        plurals: &["componentstatuses"],
        instead: "/readyz?verbose has the state of each component; docs/reference/health.md explains it",
    },
];

/// What the message says if nothing is known of a resource but that it is not one of Kubernetes.
const CUSTOM: &str =
    "Kennel has no custom resources; docs/reference/api.md lists the resources that it has";
/// What the message says if nothing is known of a resource.
const UNKNOWN: &str = "docs/reference/api.md lists the resources that Kennel has";

/// What there is instead of a resource that is not served; `None` if it is served, but not at this path.
pub(crate) fn instead(group: &str, version: &str, plural: &str) -> Option<String> {
    let mut known = UNSERVED.iter();
    if let Some(unserved) = known.find(|unserved| unserved.plurals.contains(&plural)) {
        return Some(unserved.instead.to_owned());
    }
    if is_custom(group) {
        return Some(CUSTOM.to_owned());
    }
    let served = served();
    let of_name = served.iter().filter(|served| served.0 == plural);
    let versions: Vec<String> = of_name
        .map(|(_, group, version)| api_version(group, version))
        .collect();
    if plural.is_empty() || versions.contains(&api_version(group, version)) {
        return None;
    }
    if !versions.is_empty() {
        return Some(format!("{plural} are served as {}", versions.join(" and ")));
    }
    let close = closest(plural, served.iter().map(|served| served.0));
    let close = close.and_then(|close| served.iter().find(|served| served.0 == close));
    let words = close.map(|(name, group, _)| format!("did you mean {}?", qualified(name, group)));
    Some(words.unwrap_or_else(|| UNKNOWN.to_owned()))
}

/// Plural, group and version of each resource that is served.
fn served() -> Vec<(&'static str, &'static str, &'static str)> {
    let stored = RESOURCES
        .iter()
        .map(|row| (row.plural, row.group, row.version));
    let create_only = CREATE_ONLY
        .iter()
        .map(|row| (row.plural, row.group, row.version));
    let measured = MEASURED
        .iter()
        .map(|row| (row.plural, row.group, row.version));
    stored.chain(create_only).chain(measured).collect()
}

/// Whether Kubernetes itself has no such group: those of its groups that have a domain are below `k8s.io`.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
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
        let both = "nodes are served as v1 and metrics.k8s.io/v1beta1";
        check("metrics.k8s.io", "v1", "nodes", Some(both));
        check(
            "apps",
            "v1",
            "deamonsets",
            Some("did you mean daemonsets.apps?"),
        );
        // Served, but not at a path of this form.
        check("", "v1", "nodes", None);
        check("metrics.k8s.io", "v1beta1", "nodes", None);
        check("", "v1", "", None);
    }

    #[test]
    fn any_other_resource_leads_to_the_list_of_resources() {
        check("", "v1", "widgets", Some(UNKNOWN));
        check(
            "internal.apiserver.k8s.io",
            "v1alpha1",
            "storageversions",
            Some(UNKNOWN),
        );
        check("cert-manager.io", "v1", "certificates", Some(CUSTOM));
        // A resource of another project that has the name of one of ours.
        check("serving.knative.dev", "v1", "services", Some(CUSTOM));
        check("cluster.x-k8s.io", "v1beta1", "clusters", Some(CUSTOM));
        for words in [UNKNOWN, CUSTOM] {
            assert!(words.contains("docs/reference/api.md"), "{words}");
        }
    }

    #[test]
    fn resources_that_kennel_does_not_have_are_known() {
        for (group, plural, part) in [
            ("batch", "jobs", "runs to its end"),
            ("apps", "deployments", "docs/guides/daemonsets.md"),
            (
                "networking.k8s.io",
                "ingresses",
                "docs/guides/reach-a-daemon.md",
            ),
            (
                "monitoring.coreos.com",
                "servicemonitors",
                "kubernetes_sd_configs",
            ),
            (
                "monitoring.coreos.com",
                "podmonitors",
                "kubernetes_sd_configs",
            ),
            (
                "admissionregistration.k8s.io",
                "validatingwebhookconfigurations",
                "docs/reference/admission.md",
            ),
            ("apiregistration.k8s.io", "apiservices", "metrics.k8s.io"),
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                "--skip-crds",
            ),
            (
                "policy",
                "podsecuritypolicies",
                "docs/guides/limit-a-namespace.md",
            ),
            (
                "autoscaling",
                "horizontalpodautoscalers",
                "nothing to scale",
            ),
            (
                "flowcontrol.apiserver.k8s.io",
                "prioritylevelconfigurations",
                "docs/reference/limits.md",
            ),
        ] {
            let words = instead(group, "v1", plural).unwrap();
            assert!(words.contains(part), "{plural}: {words}");
        }
    }

    #[test]
    fn what_is_served_is_not_listed_as_missing_and_nothing_is_listed_twice() {
        let plurals: Vec<&str> = UNSERVED
            .iter()
            .flat_map(|unserved| unserved.plurals.iter().copied())
            .collect();
        for (index, plural) in plurals.iter().enumerate() {
            assert!(!plurals[..index].contains(plural), "{plural}");
            assert!(
                served().iter().all(|served| served.0 != *plural),
                "{plural}"
            );
        }
    }

    /// The messages name pages of this repository.
    #[test]
    fn the_pages_that_messages_name_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let all = UNSERVED.iter().map(|unserved| unserved.instead);
        for words in all.chain([UNKNOWN, CUSTOM]) {
            let pages = words.split([' ', ';', ',', ':']);
            for page in
                pages.filter(|word| word.starts_with("docs/") || word.starts_with("examples/"))
            {
                assert!(root.join(page).exists(), "{page}");
            }
        }
    }
}
