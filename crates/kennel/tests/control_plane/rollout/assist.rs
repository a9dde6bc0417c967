//! `kennel controller --assist` beside a controller that cannot be switched off: that of `kennel up`, which ignores policies
//! of the strategy `OnDelete` as upstream's does (R11).

use kennel_testkit::Controller;
use serde_json::{Value, json};

use super::fixture::{Fixture, WATCH};
use crate::why::fixture::{self as cluster, KENNEL};

/// Its lease expires soon, so that the next one need not wait for long.
const ASSIST: &[&str] = &[
    "--assist",
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1500ms",
    "--leader-elect-retry-period=200ms",
];

#[test]
fn r11_an_assistant_stages_the_rollouts_of_the_clusters_own_controller() {
    let cluster = cluster::Fixture::with("", &["--simulate", "5"]);
    let kubeconfig = cluster.kennel.kubeconfig();
    let assistant = Controller::start(KENNEL, &kubeconfig, ASSIST);
    let policy = [("stages", "1 manual, 100%")];
    let strategy = json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 2}});
    let fixture = Fixture::with_strategy(cluster, 5, &policy, strategy);
    // The cluster's own controller says that it does not care.
    fixture.wait_for_event("PolicyIgnored", "--assist");

    let plan = fixture.plan("2");
    fixture.apply("2");
    fixture.wait_for("phase", "AwaitingPromotion");
    assert_eq!(
        fixture.nodes_with("2"),
        super::fixture::planned(&plan, 1),
        "{plan}"
    );
    fixture.wait_for_conditions(
        "Progressing=True AwaitingPromotion\nReconciling=True AwaitingPromotion\nStalled=False AwaitingPromotion\n",
    );
    // Another assistant goes on where this one ends.
    assistant.kill();
    let _assistant = Controller::start(KENNEL, &kubeconfig, ASSIST);
    fixture.check(&["promote", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 0);
    assert_eq!(fixture.nodes_with("2").len(), 5);

    // What cannot work is refused, and no pod is deleted.
    let kubectl = &fixture.cluster.kubectl;
    let rollback = "rollout.kennel.dev/on-failure=rollback";
    kubectl.run(&["annotate", "ds", "agent", rollback]).ok();
    fixture.wait_for_conditions(
        "Progressing=False PolicyInvalid\nReconciling=False PolicyInvalid\nStalled=True PolicyInvalid\n",
    );
    fixture.wait_for_event("PolicyInvalid", "fills every gap with the newest template");

    // The counters are the other controller's, the states are on its revisions.
    let revisions = kubectl.get(&["controllerrevisions"]).unwrap();
    let verdict = |revision: &Value| {
        revision["metadata"]["annotations"]["rollout.kennel.dev/verdict"].clone()
    };
    let revisions = revisions["items"].as_array().unwrap();
    assert_eq!(
        revisions.iter().map(verdict).collect::<Vec<_>>(),
        ["stable", "stable"]
    );
    let updated = "jsonpath={.status.updatedNumberScheduled}";
    assert_eq!(
        kubectl.run(&["get", "ds", "agent", "-o", updated]).ok(),
        "5"
    );
    // Its deletions are no sign of a controller that should not be there.
    let alarms = [
        "get",
        "events",
        "--field-selector=reason=ConflictingController",
    ];
    assert_eq!(kubectl.run(&alarms).ok(), "");
}
