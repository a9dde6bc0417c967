//! `kennel controller` as a process of its own, beside a cluster that runs none, with the rights that
//! its manifests give it.

use std::path::PathBuf;

use kennel_testkit::{Controller, Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::{Value, json};

pub(super) const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const MANIFEST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/kubernetes/daemonset-controller.yaml"
);
const ACCOUNT: &str = "kennel-daemonset-controller";
pub(super) const WITHOUT: &[&str] = &[
    "up",
    "--simulate",
    "3",
    "--controllers=*,-daemonset-controller",
];

/// A cluster, and the administrator's kubectl.
pub(super) struct Cluster {
    pub(super) kennel: Kennel,
    pub(super) kubectl: Kubectl,
}

impl Cluster {
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::of(Kennel::start(BINARY, arguments))
    }

    fn of(kennel: Kennel) -> Self {
        let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
        Self { kennel, kubectl }
    }

    pub(super) fn ask(&self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        self.kubectl.run(&words).ok()
    }

    pub(super) fn create(&self, image: &str) {
        let manifest = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"terminationGracePeriodSeconds": 0,
                         "containers": [{"name": "agent", "image": image}]}}}});
        let manifest = manifest.to_string();
        let created = self
            .kubectl
            .run_with_input(&["create", "-f", "-"], &manifest);
        created.ok();
    }

    pub(super) fn rolled_out(&self) {
        self.ask("rollout status ds/agent --timeout=60s");
    }

    /// The names of its pods, sorted.
    fn pods(&self) -> Vec<String> {
        let names = self.ask("get pods -l app=agent -o name");
        let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// Applies the roles of the manifests, and makes a kubeconfig with a token of their account.
    pub(super) fn kubeconfig_of_the_manifests(&self) -> PathBuf {
        self.kubeconfig_with(&std::fs::read_to_string(MANIFEST).unwrap())
    }

    /// The same with other roles.
    fn kubeconfig_with(&self, whole: &str) -> PathBuf {
        // Deployments are for a cluster that has them.
        let served: Vec<&str> = whole
            .split("\n---\n")
            .filter(|document| !document.contains("kind: Deployment"))
            .collect();
        let applied = self
            .kubectl
            .run_with_input(&["apply", "-f", "-"], &served.join("\n---\n"));
        applied.ok();
        self.kubeconfig_of(ACCOUNT)
    }

    /// A kubeconfig with a token of a service account.
    pub(super) fn kubeconfig_of(&self, account: &str) -> PathBuf {
        let token = self.ask(&format!("create token {account} -n kube-system"));
        let config = self.ask("config view --raw -o json");
        let mut config: Value = serde_json::from_str(&config).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        let path = self.kennel.data_dir().join(format!("{account}.kubeconfig"));
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }
}

#[test]
fn s7_12_the_rights_of_the_manifests_are_enough_for_everything() {
    let cluster = Cluster::start(WITHOUT);
    let kubeconfig = cluster.kubeconfig_of_the_manifests();
    let controller = Controller::start(BINARY, &kubeconfig, &[]);
    controller.wait_for("became leader");
    cluster.create("one");
    cluster.rolled_out();
    // Rollout and rollback, adoption and release: everything that it may have to write.
    cluster.ask("set image ds/agent agent=two");
    cluster.rolled_out();
    cluster.ask("rollout undo ds/agent");
    cluster.rolled_out();
    let pods = cluster.pods();
    let no_owner = r#"{"metadata":{"ownerReferences":null}}"#;
    cluster.ask(&format!("patch {} --type=merge -p {no_owner}", pods[0]));
    cluster.ask(&format!("label {} app=other --overwrite", pods[1]));
    let owner = |pod: &str| {
        let path = "jsonpath={.metadata.ownerReferences[0].name}";
        cluster.ask(&format!("get {pod} -o {path}"))
    };
    eventually(Deadline::seconds(60), || {
        match (owner(&pods[0]).as_str(), owner(&pods[1]).as_str()) {
            ("agent", "") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    // It may remove the taint of nodes that wait for their daemons (R12.3).
    let node = cluster.ask("get nodes -o jsonpath={.items[0].metadata.name}");
    cluster.ask(&format!(
        "taint nodes {node} kennel.dev/daemons-not-ready:NoSchedule"
    ));
    eventually(Deadline::seconds(60), || {
        let taints = cluster.ask(&format!("get node {node} -o jsonpath={{.spec.taints}}"));
        taints.is_empty().then_some(()).ok_or(taints)
    });
    eventually(Deadline::seconds(60), || match cluster.pods().len() {
        3 => Ok(()),
        count => Err(format!("{count} pods")),
    });
    cluster.ask(r#"patch ds agent -p {"spec":{"revisionHistoryLimit":0}}"#);
    eventually(Deadline::seconds(60), || {
        match cluster
            .ask("get controllerrevisions -o name")
            .lines()
            .count()
        {
            1 => Ok(()),
            count => Err(format!("{count} revisions")),
        }
    });
    let events = cluster.ask("get events --field-selector involvedObject.name=agent");
    assert!(events.contains("SuccessfulCreate"), "{events}");
    let log = controller.log();
    assert!(!log.contains("forbidden"), "{log}");
    assert!(controller.stop().success());
    let holder = "jsonpath={.spec.holderIdentity}";
    let lease = cluster.ask(&format!("get lease {ACCOUNT} -n kube-system -o {holder}"));
    assert_eq!(lease, "", "the lease was given back");
}

#[test]
fn without_the_right_to_watch_namespaces_only_their_policies_do_not_count() {
    let cluster = Cluster::start(WITHOUT);
    cluster.ask("annotate namespace default rollout.kennel.dev/max-restarts=0");
    let whole = std::fs::read_to_string(MANIFEST).unwrap();
    let rule = "- apiGroups: [\"\"]\n  resources: [namespaces]\n  verbs: [list, watch]\n";
    let without = whole.replace(rule, "");
    assert_ne!(without, whole);
    let kubeconfig = cluster.kubeconfig_with(&without);
    let controller = Controller::start(BINARY, &kubeconfig, &[]);
    cluster.create("one");
    cluster.rolled_out();
    cluster.ask("set image ds/agent agent=two");
    cluster.rolled_out();
    let conditions = || cluster.ask("get ds agent -o jsonpath={.status.conditions}");
    assert_eq!(conditions(), "", "no policy counts");
    // Once it has the right, they do.
    cluster.kubeconfig_of_the_manifests();
    eventually(Deadline::seconds(60), || match conditions() {
        shown if shown.contains("Complete") => Ok(()),
        shown => Err(format!("{shown}{}", controller.log())),
    });
    let warned =
        "no right to list and watch namespaces: rollout policies on Namespaces do not count";
    assert_eq!(controller.log().matches(warned).count(), 1);
}

#[test]
fn switching_over_and_back_restarts_no_pod() {
    let cluster = Cluster::start(&["up", "--simulate", "3"]);
    cluster.create("one");
    cluster.rolled_out();
    cluster.ask("set image ds/agent agent=two");
    cluster.rolled_out();
    let before = (cluster.pods(), cluster.ask("rollout history ds/agent"));
    let cluster = Cluster::of(cluster.kennel.restart_with(WITHOUT));
    let controller = Controller::start(BINARY, &cluster.kennel.kubeconfig(), &[]);
    controller.wait_for("became leader");
    // A new generation whose template is the same: it is rolled out when the controller at work has
    // looked at everything.
    let unchanged = |cluster: &Cluster, limit: u8| {
        let patch = json!({"spec": {"revisionHistoryLimit": limit}});
        cluster.ask(&format!("patch ds agent -p {patch}"));
        cluster.rolled_out();
        assert_eq!(cluster.pods(), before.0);
        assert_eq!(cluster.ask("rollout history ds/agent"), before.1);
    };
    unchanged(&cluster, 9);
    controller.stop();
    let cluster = Cluster::of(cluster.kennel.restart_with(&["up", "--simulate", "3"]));
    unchanged(&cluster, 8);
}

#[test]
fn of_two_replicas_one_works_and_the_other_takes_over_when_it_is_killed() {
    let cluster = Cluster::start(WITHOUT);
    let kubeconfig = cluster.kennel.kubeconfig();
    let first = Controller::start(BINARY, &kubeconfig, &[]);
    first.wait_for("became leader");
    let second = Controller::start(BINARY, &kubeconfig, &[]);
    second.wait_for("standing by: the lease kube-system/kennel-daemonset-controller is held by");
    cluster.create("one");
    cluster.rolled_out();
    let leads = |controller: &Controller, expected: u8| {
        let metrics = controller.get("/metrics");
        let line = format!("leader_election_master_status{{name=\"{ACCOUNT}\"}} {expected}\n");
        assert!(metrics.contains(&line), "{metrics}");
    };
    leads(&first, 1);
    leads(&second, 0);
    for path in ["/healthz", "/readyz"] {
        assert!(second.get(path).starts_with("HTTP/1.1 200"), "{path}");
    }
    let said = second.log();
    assert_eq!(said.matches("standing by").count(), 1, "{said}");
    let created = "kennel_daemonset_actions_total{action=\"create_pod\",result=\"done\"} 3\n";
    assert!(first.get("/metrics").contains(created));
    first.kill();
    second.wait_for("became leader");
    cluster.ask("set image ds/agent agent=two");
    cluster.rolled_out();
    leads(&second, 1);
}

#[test]
fn pods_placed_directly_need_no_scheduler() {
    let few = [
        "up",
        "--simulate",
        "3",
        "--controllers=node-lifecycle-controller",
    ];
    let cluster = Cluster::start(&few);
    let kubeconfig = cluster.kennel.kubeconfig();
    let _controller = Controller::start(BINARY, &kubeconfig, &["--placement=direct"]);
    cluster.create("one");
    cluster.rolled_out();
    assert_eq!(cluster.pods().len(), 3);
}

#[test]
fn a_process_that_is_killed_again_and_again_leaves_one_pod_on_each_node() {
    let cluster = Cluster::start(WITHOUT);
    let kubeconfig = cluster.kennel.kubeconfig();
    cluster.create("zero");
    for image in ["one", "two", "three"] {
        let controller = Controller::start(BINARY, &kubeconfig, &["--leader-elect=false"]);
        controller.wait_for("daemonset controller started");
        cluster.ask(&format!("set image ds/agent agent={image}"));
        controller.kill();
    }
    let _last = Controller::start(BINARY, &kubeconfig, &["--leader-elect=false"]);
    cluster.rolled_out();
    let images = "jsonpath={range .items[*]}{.spec.containers[0].image}{.spec.nodeName} {end}";
    eventually(Deadline::seconds(60), || {
        let arguments = ["get", "pods", "-l", "app=agent", "-o", images];
        let seen = cluster.kubectl.run(&arguments).ok();
        let mut seen: Vec<&str> = seen.split_whitespace().collect();
        seen.sort_unstable();
        if seen == ["threesim-1", "threesim-2", "threesim-3"] {
            Ok(())
        } else {
            Err(format!("{seen:?}"))
        }
    });
}

#[test]
fn a_controller_beside_the_built_in_one_stands_by() {
    let cluster = Cluster::start(&["up", "--simulate", "3"]);
    let kubeconfig = cluster.kennel.kubeconfig();
    let second = Controller::start(BINARY, &kubeconfig, &[]);
    second.wait_for(
        "standing by: the lease kube-system/kennel-daemonset-controller is held by \"kennel-up\"",
    );
    cluster.create("one");
    cluster.rolled_out();
    let written = "kennel_daemonset_actions_total{action=\"create_pod\",result=\"done\"} 0\n";
    let metrics = second.get("/metrics");
    assert!(metrics.contains(written), "{metrics}");
    assert!(second.stop().success());
}

#[test]
fn a_built_in_controller_waits_for_one_that_leads_and_takes_over_after_it() {
    let cluster = Cluster::start(WITHOUT);
    let first = Controller::start(BINARY, &cluster.kennel.kubeconfig(), &[]);
    first.wait_for("became leader");
    // It outlives the server, and comes back to it before its lease expires.
    let cluster = Cluster::of(cluster.kennel.come_back_with(&["up", "--simulate", "3"]));
    cluster.create("one");
    cluster.rolled_out();
    let log = cluster.kennel.log();
    assert!(
        log.contains("standing by: the lease kube-system/kennel-daemonset-controller is held by"),
        "{log}"
    );
    assert!(first.stop().success());
    cluster.ask("set image ds/agent agent=two");
    cluster.rolled_out();
    let leads = "kennel-up became leader by the lease kube-system/kennel-daemonset-controller";
    assert!(cluster.kennel.log().contains(leads));
}

#[test]
fn without_the_right_to_write_leases_a_controller_says_what_to_do() {
    let cluster = Cluster::start(WITHOUT);
    let kubeconfig = cluster.kubeconfig_of_the_manifests();
    cluster.ask("delete rolebinding kennel:daemonset-controller -n kube-system");
    let mut controller = Controller::start(BINARY, &kubeconfig, &[]);
    let ended = controller.wait_for_end();
    assert_eq!(ended.code(), Some(1));
    let log = controller.log();
    for words in [
        "error: cannot use the lease kube-system/kennel-daemonset-controller for leader election: grant get, create and \
         update on leases (coordination.k8s.io) in namespace kube-system",
        "switch election off with --leader-elect=false",
        "because: leases.coordination.k8s.io \"kennel-daemonset-controller\" is forbidden",
    ] {
        assert!(log.contains(words), "{words} in\n{log}");
    }
    // Switched off, it needs none.
    let alone = Controller::start(BINARY, &kubeconfig, &["--leader-elect=false"]);
    alone.wait_for("leader election is off");
    cluster.create("one");
    cluster.rolled_out();
    let odd = ["--leader-elect-lease-duration=10s"];
    let mut odd = Controller::start(BINARY, &kubeconfig, &odd);
    assert_eq!(odd.wait_for_end().code(), Some(2), "{}", odd.log());
}

#[test]
fn two_processes_that_both_write_say_so_in_logs_events_and_metrics() {
    let cluster = Cluster::start(WITHOUT);
    let kubeconfig = cluster.kennel.kubeconfig();
    let both = [(); 2].map(|()| Controller::start(BINARY, &kubeconfig, &["--leader-elect=false"]));
    cluster.create("one");
    let said = "daemonset default/agent: another controller acts on this DaemonSet";
    let mut image = 0;
    eventually(Deadline::seconds(60), || {
        // There is always something to do for both.
        image += 1;
        cluster.ask(&format!("set image ds/agent agent=image-{image}"));
        let silent = both.iter().find(|one| !one.log().contains(said));
        silent.map_or(Ok(()), |silent| Err(silent.log()))
    });
    for controller in &both {
        let metrics = controller.get("/metrics");
        let none = |action: &str| {
            let counter = "kennel_daemonset_conflicting_writes_total";
            metrics.contains(&format!("{counter}{{action=\"{action}\"}} 0\n"))
        };
        let nothing = none("create_pod") && none("delete_pod");
        assert!(!nothing, "{metrics}");
    }
    eventually(Deadline::seconds(60), || {
        let events = cluster.ask("get events --field-selector reason=ConflictingController");
        let both = events.lines().count() == 3;
        both.then_some(()).ok_or(events)
    });
}
