//! The users that Kennel's controllers run as have the rights they need and no others: tries every resource
//! and verb as each of them.

use bytes::Bytes;
use http::{Method, Request};
use kennel_server::registry::{CREATE_ONLY, EMPTY, MEASURED, RESOURCES, Scope};
use kennel_server::request::User;
use kennel_types::Verb;
use serde_json::json;

use crate::fixture::{TestServer, request};

/// What an identity may do: verbs and a resource, with its group unless that is the core one.
type Rights = &'static [(&'static str, &'static str)];

/// The reviews that every authenticated user may create.
const ANYBODY: Rights = &[
    ("create", "selfsubjectreviews.authentication.k8s.io"),
    ("create", "selfsubjectaccessreviews.authorization.k8s.io"),
    ("create", "selfsubjectrulesreviews.authorization.k8s.io"),
];

const DAEMON_SET_CONTROLLER: Rights = &[
    ("get list watch", "daemonsets.apps"),
    ("update", "daemonsets/status.apps"),
    (
        "get list watch create update patch delete",
        "controllerrevisions.apps",
    ),
    ("list watch patch", "nodes"),
    ("list watch create patch delete", "pods"),
    ("create", "pods/binding"),
    ("get list watch create", "configmaps"),
    ("list create update patch", "events"),
    ("create update patch", "events.events.k8s.io"),
];

/// Upstream's role, which reads more than Kennel's controller.
const SCHEDULER: Rights = &[
    ("get list watch", "nodes"),
    ("get list watch", "namespaces"),
    ("get list watch delete", "pods"),
    ("create", "pods/binding"),
    ("create", "bindings"),
    ("update patch", "pods/status"),
    ("get list watch", "services"),
    ("get list watch", "replicationcontrollers"),
    ("get list watch update patch", "persistentvolumes"),
    ("get list watch update patch", "persistentvolumeclaims"),
    ("get list watch", "replicasets.apps"),
    ("get list watch", "statefulsets.apps"),
    ("get list watch", "poddisruptionbudgets.policy"),
    ("get list watch", "csinodes.storage.k8s.io"),
    ("get list watch", "csidrivers.storage.k8s.io"),
    ("get list watch", "csistoragecapacities.storage.k8s.io"),
    ("get list watch", "storageclasses.storage.k8s.io"),
    ("get list watch", "volumeattachments.storage.k8s.io"),
    ("get list watch", "deviceclasses.resource.k8s.io"),
    ("get list watch", "resourceslices.resource.k8s.io"),
    (
        "get list watch update patch",
        "resourceclaims.resource.k8s.io",
    ),
    // Of its own name it may also be read and updated.
    ("create", "leases.coordination.k8s.io"),
    ("create", "tokenreviews.authentication.k8s.io"),
    ("create", "subjectaccessreviews.authorization.k8s.io"),
    ("create update patch", "events"),
    ("create update patch", "events.events.k8s.io"),
];

const INFORMERS: Rights = &[
    ("list watch", "namespaces"),
    ("list watch", "nodes"),
    ("list watch", "pods"),
    ("list watch", "daemonsets.apps"),
    ("list watch", "controllerrevisions.apps"),
    (
        "list watch",
        "certificatesigningrequests.certificates.k8s.io",
    ),
    ("list watch", "services"),
    ("list watch", "endpoints"),
    ("list watch", "endpointslices.discovery.k8s.io"),
];

const DNS: Rights = &[
    ("list watch", "services"),
    ("list watch", "endpointslices.discovery.k8s.io"),
    // It resolves names of other domains for nodes and their pods alone.
    ("list watch", "nodes"),
];

const DASHBOARD: Rights = &[
    ("get list watch", "namespaces"),
    ("get list watch", "nodes"),
    ("get list watch", "pods"),
    ("get", "pods/log"),
    ("get list watch", "events"),
    ("get list watch patch", "daemonsets.apps"),
    ("get list watch", "controllerrevisions.apps"),
    ("get list", "nodes.metrics.k8s.io"),
    ("get list", "pods.metrics.k8s.io"),
];

const SIMULATED_NODES: Rights = &[("list watch", "nodes"), ("list watch", "pods")];

const POD_COLLECTOR: Rights = &[
    ("list watch delete", "pods"),
    ("patch", "pods/status"),
    ("get list", "nodes"),
];

/// Every verb, as a request: with a name or without, and with which method.
const VERBS: [(&str, &str, bool); 8] = [
    ("get", "GET", true),
    ("list", "GET", false),
    ("watch", "GET", false),
    ("create", "POST", false),
    ("update", "PUT", true),
    ("patch", "PATCH", true),
    ("delete", "DELETE", true),
    ("deletecollection", "DELETE", false),
];

/// One thing to try: verb, resource as in [`Rights`], method, path.
struct Attempt {
    verb: &'static str,
    resource: String,
    method: &'static str,
    path: String,
}

fn collection(group: &str, version: &str, plural: &str, scope: Scope) -> String {
    let root = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    match scope {
        Scope::Namespaced => format!("{root}/namespaces/default/{plural}"),
        Scope::Cluster => format!("{root}/{plural}"),
    }
}

/// All requests, for objects that do not exist, so that allowed ones change nothing.
fn attempts() -> Vec<Attempt> {
    let stored = RESOURCES
        .iter()
        .map(|r| (r.group, r.version, r.plural, r.scope));
    let empty = EMPTY
        .iter()
        .map(|r| (r.group, r.version, r.plural, r.scope));
    let mut all = Vec::new();
    let dotted =
        |name: &str, group: &str| format!("{name}.{group}").trim_end_matches('.').to_owned();
    for (group, version, plural, scope) in stored.chain(empty) {
        let path = collection(group, version, plural, scope);
        for (verb, method, named) in VERBS {
            let path = match (verb, named) {
                ("watch", _) => format!("{path}?watch=true"),
                (_, true) => format!("{path}/absent"),
                _ => path.clone(),
            };
            let resource = dotted(plural, group);
            all.push(Attempt {
                verb,
                resource,
                method,
                path,
            });
        }
    }
    for row in RESOURCES {
        let path = collection(row.group, row.version, row.plural, row.scope);
        for sub in row.subresources {
            for (verb, method, _) in VERBS
                .into_iter()
                .filter(|v| sub.verbs.contains(&Verb::from(v.0)))
            {
                let resource = dotted(&format!("{}/{}", row.plural, sub.name), row.group);
                let path = format!("{path}/absent/{}", sub.name);
                all.push(Attempt {
                    verb,
                    resource,
                    method,
                    path,
                });
            }
        }
    }
    for row in MEASURED {
        let path = collection(row.group, row.version, row.plural, row.scope);
        let resource = dotted(row.plural, row.group);
        all.push(Attempt {
            verb: "list",
            resource,
            method: "GET",
            path,
        });
    }
    for row in CREATE_ONLY {
        let path = collection(row.group, row.version, row.plural, row.scope);
        let resource = dotted(row.plural, row.group);
        all.push(Attempt {
            verb: "create",
            resource,
            method: "POST",
            path,
        });
    }
    all
}

fn asking(attempt: &Attempt) -> Request<Bytes> {
    let method: Method = attempt.method.parse().unwrap();
    let body = (method != Method::GET).then(|| json!({}));
    request(method, &attempt.path, body.as_ref())
}

async fn check(name: &str, user: User, rights: Rights) {
    let server = TestServer::new().await;
    let rights = || rights.iter().chain(ANYBODY);
    let mut wrong = Vec::new();
    for attempt in attempts() {
        let Attempt {
            verb,
            resource,
            path,
            ..
        } = &attempt;
        let has =
            |(verbs, of): &(&str, &str)| of == resource && verbs.split(' ').any(|v| v == *verb);
        let code = server.code_as(asking(&attempt), user.clone()).await;
        let allowed = rights().any(has);
        if allowed == (code == 403) {
            let should = if allowed { "may" } else { "may not" };
            wrong.push(format!("{name} {should} {verb} {resource}: {code} {path}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_daemonset_controller_makes_pods_and_reads_no_secrets() {
    let user = User::service_account("kube-system", "daemon-set-controller");
    check("the DaemonSet controller", user, DAEMON_SET_CONTROLLER).await;
}

#[tokio::test]
async fn informers_read_eight_kinds_and_write_nothing() {
    let user = User::authenticated("system:kennel:informers", Vec::new());
    check("an informer", user, INFORMERS).await;
}

/// Its lease is in another namespace than those that are tried here.
#[tokio::test]
async fn the_leader_election_of_controllers_has_a_right_to_its_lease_alone() {
    let user = User::authenticated("system:kennel:controller-manager", Vec::new());
    check("the controllers' election", user, &[]).await;
}

#[tokio::test]
async fn the_dns_server_reads_three_kinds_and_writes_nothing() {
    let user = User::authenticated("system:kennel:dns", Vec::new());
    check("the DNS server", user, DNS).await;
}

#[tokio::test]
async fn the_dashboard_reads_what_it_shows_and_changes_daemonsets_alone() {
    let user = User::authenticated("system:kennel:dashboard", Vec::new());
    check("the dashboard", user, DASHBOARD).await;
}

#[tokio::test]
async fn simulated_nodes_together_see_nodes_and_pods_and_nothing_else() {
    let user = User::authenticated("system:kennel:simulated-nodes", Vec::new());
    check("the simulated nodes' watch", user, SIMULATED_NODES).await;
}

#[tokio::test]
async fn the_scheduler_binds_and_reads_no_secrets() {
    let user = User::authenticated("system:kube-scheduler", Vec::new());
    check("the scheduler", user, SCHEDULER).await;
}

#[tokio::test]
async fn the_pod_collector_deletes_pods_and_reads_no_secrets() {
    let user = User::service_account("kube-system", "pod-garbage-collector");
    check("the pod collector", user, POD_COLLECTOR).await;
}

#[tokio::test]
async fn the_token_cleaner_has_no_rights_outside_kube_system() {
    let user = User::service_account("kube-system", "token-cleaner");
    check("the token cleaner", user, &[]).await;
}
