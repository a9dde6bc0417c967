//! Nodes that are not eligible, with and without pods.

use kennel_types::condition::ConditionStatus;
use kennel_types::{Condition, ConditionType, Timestamp};
use serde_json::{Value, json};

use super::super::{Cause, Verdict};
use super::fixture::{Fixture, ready, with_container};

const EXCLUDED: Verdict = Verdict::Excluded;
const LINGERS: Verdict = Verdict::Lingers;

fn affinity(terms: &Value) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": terms}}}})
}

#[test]
fn a_label_that_the_node_selector_wants_is_missing() {
    let fixture = Fixture::with(json!({"nodeSelector": {"disk": "ssd"}}));
    let message = "nodeSelector wants disk=ssd, the node has no label disk";
    let answer = fixture.check(EXCLUDED, Cause::NodeSelector, message);
    assert_eq!(
        answer.remedy.as_deref(),
        Some("kubectl label node n1 disk=ssd")
    );
}

#[test]
fn a_label_that_the_node_selector_wants_is_another() {
    let fixture = Fixture::with(json!({"nodeSelector": {"disk": "ssd"}})).label("disk", "hdd");
    let message = "nodeSelector wants disk=ssd, the node has disk=hdd";
    let answer = fixture.check(EXCLUDED, Cause::NodeSelector, message);
    let remedy = "kubectl label node n1 disk=ssd --overwrite";
    assert_eq!(answer.remedy.as_deref(), Some(remedy));
}

#[test]
fn the_template_names_another_node() {
    let fixture = Fixture::with(json!({"nodeName": "n2"}));
    let message = "spec.nodeName of the template is n2";
    fixture.check(EXCLUDED, Cause::NodeName, message);
}

#[test]
fn no_term_of_required_affinity_matches_and_each_says_what_it_misses() {
    let terms = json!([
        {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100", "h100"]},
                              {"key": "rack", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["7"]}]}]);
    let fixture = Fixture::with(affinity(&terms)).label("cores", "4");
    let message = "required node affinity does not match: term 1 wants gpu in (a100, h100), the node \
                   has no label gpu, and wants a label rack, the node has no label rack; term 2 wants \
                   cores above 7, the node has cores=4";
    let answer = fixture.check(EXCLUDED, Cause::NodeAffinity, message);
    let remedy = "kubectl label node n1 cores=8 --overwrite";
    assert_eq!(
        answer.remedy.as_deref(),
        Some(remedy),
        "the smallest change"
    );
}

#[test]
fn a_label_that_required_affinity_forbids() {
    let terms = json!([{"matchExpressions": [{"key": "virtual", "operator": "DoesNotExist"}]}]);
    let fixture = Fixture::with(affinity(&terms)).label("virtual", "yes");
    let message =
        "required node affinity does not match: wants no label virtual, the node has virtual=yes";
    let answer = fixture.check(EXCLUDED, Cause::NodeAffinity, message);
    assert_eq!(
        answer.remedy.as_deref(),
        Some("kubectl label node n1 virtual-")
    );
}

#[test]
fn required_affinity_that_names_another_node_is_no_matter_of_labels() {
    let terms = json!([{"matchFields":
        [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]);
    let message = "required node affinity does not match: wants that metadata.name is n2";
    let answer = Fixture::with(affinity(&terms)).check(EXCLUDED, Cause::NodeAffinity, message);
    let remedy = "# change required node affinity in spec.template.spec.affinity";
    assert_eq!(answer.remedy.as_deref(), Some(remedy));
}

#[test]
fn a_taint_is_not_tolerated_and_the_toleration_is_told() {
    let fixture = Fixture::new().taint("node-role.kubernetes.io/control-plane", "", "NoSchedule");
    let message = "taint node-role.kubernetes.io/control-plane:NoSchedule is not tolerated";
    let answer = fixture.check(EXCLUDED, Cause::Taint, message);
    let remedy = "# add to spec.template.spec:\ntolerations:\n\
                  - key: node-role.kubernetes.io/control-plane\n  operator: Exists\n  effect: NoSchedule";
    assert_eq!(answer.remedy.as_deref(), Some(remedy));
    assert!(fixture.answer().nodes[0].ok());
}

#[test]
fn a_taint_with_a_value_is_tolerated_by_that_value() {
    let fixture = Fixture::new().taint("dedicated", "db", "NoExecute");
    let message = "taint dedicated=db:NoExecute is not tolerated";
    let answer = fixture.check(EXCLUDED, Cause::Taint, message);
    let remedy = "# add to spec.template.spec:\ntolerations:\n\
                  - key: dedicated\n  operator: Equal\n  value: \"db\"\n  effect: NoExecute";
    assert_eq!(answer.remedy.as_deref(), Some(remedy));
}

#[test]
fn the_toleration_that_is_told_would_do() {
    let tolerations = json!([{"key": "dedicated", "operator": "Equal", "value": "db",
                              "effect": "NoExecute"}]);
    let fixture = Fixture::with(json!({ "tolerations": tolerations }));
    let fixture = fixture.taint("dedicated", "db", "NoExecute");
    assert_eq!(fixture.on("n1").cause, Cause::NoPod);
}

#[test]
fn several_rules_refuse_and_the_remedy_has_them_all() {
    let fixture = Fixture::with(json!({"nodeSelector": {"a": "1", "b": "2"}}));
    let fixture = fixture.taint("x", "", "NoSchedule");
    let message = "nodeSelector wants a=1, the node has no label a (and 2 more rules)";
    let answer = fixture.check(EXCLUDED, Cause::NodeSelector, message);
    let remedy = "kubectl label node n1 a=1 b=2\n# add to spec.template.spec:\ntolerations:\n\
                  - key: x\n  operator: Exists\n  effect: NoSchedule";
    assert_eq!(answer.remedy.as_deref(), Some(remedy));
}

#[test]
fn every_rule_is_told_in_order_with_what_was_found() {
    let spec = json!({"nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a", "operator": "Exists"}]});
    let fixture = Fixture::with(spec).label("disk", "ssd");
    let fixture = fixture
        .taint("a", "1", "NoSchedule")
        .taint("b", "", "NoSchedule");
    let checks = fixture.on("n1").checks;
    let shown = checks
        .iter()
        .map(|c| (c.rule.as_str(), c.holds, c.found.as_str()));
    let expected = [
        ("nodeSelector disk=ssd", true, "the node has disk=ssd"),
        ("taint a=1:NoSchedule", true, "tolerated by a (any effect)"),
        ("taint b:NoSchedule", false, "not tolerated"),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

#[test]
fn a_no_schedule_taint_that_came_later_leaves_the_running_pod() {
    let fixture = Fixture::new()
        .taint("dedicated", "", "NoSchedule")
        .pod(ready("p1", "n1"));
    let message = "taint dedicated:NoSchedule is not tolerated; NoSchedule keeps new pods away and \
                   leaves running ones alone";
    let answer = fixture.check(LINGERS, Cause::Taint, message);
    let remedy = answer.remedy.unwrap();
    assert!(
        remedy.starts_with("# to remove it:\nkubectl delete pod -n default p1\n"),
        "{remedy}"
    );
    assert!(!answer.pods.is_empty() && !fixture.answer().ok);
}

#[test]
fn a_later_no_execute_taint_deletes_the_pod() {
    let fixture = Fixture::new()
        .taint("dedicated", "", "NoExecute")
        .pod(ready("p1", "n1"));
    let message = "taint dedicated:NoExecute is not tolerated; the controller deletes its pod";
    fixture.check(LINGERS, Cause::Taint, message);
}

#[test]
fn a_label_was_removed_and_the_pod_goes() {
    let mut pod = ready("p1", "n1");
    pod.view.terminating = true;
    let fixture = Fixture::with(json!({"nodeSelector": {"disk": "ssd"}})).pod(pod);
    let message =
        "nodeSelector wants disk=ssd, the node has no label disk; its pod is being deleted";
    fixture.check(LINGERS, Cause::NodeSelector, message);
}

#[test]
fn whether_a_pod_on_an_unreachable_node_runs_is_not_known() {
    let fixture = Fixture::new().unreachable().pod(ready("p1", "n1"));
    let fixture = fixture.taint("node.kubernetes.io/unreachable", "", "NoSchedule");
    let fixture = fixture.taint("node.kubernetes.io/unreachable", "", "NoExecute");
    let message = "the node is not ready (NodeStatusUnknown: Kubelet stopped posting node status): \
                   its pod may still run";
    let answer = fixture.check(Verdict::Unknown, Cause::NodeNotReady, message);
    assert_eq!(answer.pod.as_deref(), Some("p1"));
    assert!(!answer.ok());
    assert_eq!(fixture.answer().counts.unknown, 1);
    assert_eq!(
        answer.since,
        Some(Timestamp::from_secs(super::fixture::NOW - 300))
    );
}

#[test]
fn a_pod_that_did_not_work_on_an_unreachable_node_is_missing() {
    let waits = json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}});
    let fixture = Fixture::new().unreachable().pod(with_container(waits));
    let message = "the node is not ready (NodeStatusUnknown: Kubelet stopped posting node status): \
                   its pod did not work when the node last reported";
    fixture.missing(Cause::NodeNotReady, message);
    let fixture = fixture.taint("node.kubernetes.io/unreachable", "", "NoSchedule");
    fixture.missing(Cause::NodeNotReady, message);
}

#[test]
fn a_pod_that_is_deleted_on_an_unreachable_node_stays_until_the_node_confirms_it() {
    let mut pod = ready("p1", "n1");
    pod.view.terminating = true;
    let fixture = Fixture::new().unreachable().pod(pod);
    let fixture = fixture.taint("node.kubernetes.io/unreachable", "", "NoSchedule");
    let message = "the node is not ready (NodeStatusUnknown: Kubelet stopped posting node status): \
                   its pod is being deleted, which the node has not confirmed";
    fixture.check(Verdict::Unknown, Cause::NodeNotReady, message);
}

#[test]
fn an_unreachable_node_without_pod_gets_it_when_it_is_ready() {
    let fixture = Fixture::new().unreachable();
    let fixture = fixture.taint("node.kubernetes.io/unreachable", "", "NoSchedule");
    let message = "the node is not ready (NodeStatusUnknown: Kubelet stopped posting node status): \
                   its pod is created when it is ready";
    fixture.missing(Cause::NodeNotReady, message);
}

#[test]
fn n1_6_a_node_without_a_network_gets_its_pod_when_it_has_one() {
    let taint = "node.kubernetes.io/network-unavailable";
    let fixture = Fixture::new().n1(|node| {
        node.conditions.push(Condition {
            r#type: ConditionType::NetworkUnavailable,
            status: ConditionStatus::True,
            reason: "NoRouteCreated".to_owned(),
            message: "no probe through 10.0.0.2 is answered.".to_owned(),
            ..Condition::default()
        });
    });
    let why = "NoRouteCreated: no probe through 10.0.0.2 is answered";
    let tainted = fixture.taint(taint, "", "NoSchedule");
    let message =
        format!("the node has no pod network ({why}): its pod is created when it has one");
    let answer = tainted.missing(Cause::NetworkUnavailable, &message);
    let remedy = answer.remedy.as_deref().unwrap_or_default();
    assert!(remedy.contains("kennel doctor network"), "{remedy}");
    assert!(!remedy.contains("tolerations"), "{remedy}");
    // A pod that ran before stays.
    let running = tainted.pod(ready("p1", "n1"));
    let message = format!(
        "the node has no pod network ({why}): its pod runs, and others are not placed here"
    );
    running.check(Verdict::Runs, Cause::NetworkUnavailable, &message);
}

#[test]
fn n1_6_a_daemon_that_tolerates_a_missing_network_is_told_of_it() {
    let fixture = Fixture::with(json!({"hostNetwork": true}))
        .n1(|node| {
            node.conditions.push(Condition {
                r#type: ConditionType::NetworkUnavailable,
                status: ConditionStatus::True,
                reason: "NoPodCIDR".to_owned(),
                ..Condition::default()
            });
        })
        .pod(ready("p1", "n1"));
    let fixture = fixture.taint("node.kubernetes.io/network-unavailable", "", "NoSchedule");
    let answer = fixture.answer();
    let node = &answer.nodes[0];
    assert_eq!(node.verdict, Verdict::Runs);
    assert!(
        node.remarks
            .contains(&"the node has no pod network (NoPodCIDR)".to_owned()),
        "{:?}",
        node.remarks
    );
}

#[test]
fn a_cordoned_node_runs_it_all_the_same() {
    let fixture = Fixture::new()
        .pod(ready("p1", "n1"))
        .n1(|node| node.view.unschedulable = true);
    let fixture = fixture.taint("node.kubernetes.io/unschedulable", "", "NoSchedule");
    let answer = fixture.check(Verdict::Runs, Cause::UpToDate, "runs");
    assert_eq!(
        answer.remarks,
        ["the node is cordoned, which daemon pods tolerate"]
    );
}
