//! The strategy of the specification's first chapter, and recorded answers of a real cluster.

use serde_json::{Value, json};

use super::DaemonSet;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::controllerrevision::ControllerRevision;
use crate::kinds::pod::Pod;
use crate::kinds::testing::{check, check_create, created};
use crate::kinds::{Strategy, meta};
use crate::registry::NameRule;

const GENERATION: &str = "deprecated.daemonset.template.generation";

fn set(spec: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "agent", "namespace": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]},
        },
    }});
    for (key, value) in spec.as_object().expect("an object") {
        object["spec"][key] = value.clone();
    }
    object
}

fn rolling(rolling: &Value) -> Value {
    set(&json!({"updateStrategy": {"rollingUpdate": rolling}}))
}

fn updated(old: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut new = old.clone();
    change(&mut new);
    DaemonSet.default(&mut new);
    DaemonSet.prepare_update(&mut new, old);
    new
}

#[test]
fn s1_2_1_a_rolling_update_is_the_default() {
    let made = created(&DaemonSet, &set(&json!({})));
    assert_eq!(
        made["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    );
    assert_eq!(made["spec"]["revisionHistoryLimit"], 10);
    let made = created(
        &DaemonSet,
        &set(&json!({"updateStrategy": {"type": "OnDelete"}})),
    );
    assert_eq!(made["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
}

#[test]
fn s1_2_3_templates_get_no_pod_only_defaults() {
    let mut given = set(&json!({}));
    given["spec"]["template"]["spec"] = json!({"hostNetwork": true, "containers": [{
        "name": "c", "image": "i:1",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "1"}},
    }]});
    let made = created(&DaemonSet, &given);
    assert_eq!(
        made["spec"]["template"]["spec"],
        json!({
            "hostNetwork": true,
            "containers": [{
                "name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1"}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        })
    );
    check(&DaemonSet.validate_create(&made), &[]);
}

#[test]
fn s1_2_4_labels_are_not_taken_from_the_template() {
    let made = created(&DaemonSet, &set(&json!({})));
    assert_eq!(made["metadata"].get("labels"), None);
}

#[test]
fn s1_3_2_a_stored_selector_may_keep_bad_values() {
    let bad = json!({"matchLabels": {"app": "not ok!"}});
    let mut old = created(&DaemonSet, &set(&json!({"selector": bad})));
    old["spec"]["template"]["metadata"]["labels"] = json!({"app": "agent"});
    let new = updated(&old, |new| new["spec"]["minReadySeconds"] = json!(1));
    check(&DaemonSet.validate_update(&new, &old), &[]);
    assert_eq!(
        DaemonSet.validate_create(&new)[0].field,
        "spec.selector.matchLabels"
    );
}

#[test]
fn s1_3_3_no_selector_matches_nothing() {
    let mut given = set(&json!({}));
    given["spec"]
        .as_object_mut()
        .expect("an object")
        .remove("selector");
    check_create(
        &DaemonSet,
        &given,
        &[
            "spec.template.metadata.labels: Invalid value: {\"app\":\"agent\"}: `selector` does not match template `labels`",
        ],
    );
}

#[test]
fn s1_3_4_an_empty_selector_is_refused() {
    check_create(
        &DaemonSet,
        &set(&json!({"selector": {}})),
        &["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
    );
}

#[test]
fn s1_3_5_template_labels_are_reported_without_metadata() {
    let mut given = set(&json!({}));
    given["spec"]["template"]["metadata"]["labels"]["bad"] = json!("not ok!");
    given["spec"]["template"]["metadata"]["annotations"] = json!({"-": "x"});
    let errors = DaemonSet.validate_create(&created(&DaemonSet, &given));
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        ["spec.template.labels", "spec.template.annotations"]
    );
}

#[test]
fn s1_3_5_daemons_have_no_deadline() {
    let mut given = set(&json!({}));
    given["spec"]["template"]["spec"]["activeDeadlineSeconds"] = json!(5);
    check_create(
        &DaemonSet,
        &given,
        &[
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported",
        ],
    );
}

#[test]
fn s1_3_6_exactly_one_of_surge_and_unavailable_counts() {
    let at = "spec.updateStrategy.rollingUpdate";
    let valid = [
        json!({"maxUnavailable": 0, "maxSurge": 1}),
        json!({"maxUnavailable": 500}),
        json!({"maxUnavailable": "0%", "maxSurge": "10%"}),
        json!({"maxUnavailable": "100%"}),
    ];
    for strategy in valid {
        check_create(&DaemonSet, &rolling(&strategy), &[]);
    }
    let both_zero = format!("{at}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0");
    check_create(
        &DaemonSet,
        &rolling(&json!({"maxUnavailable": "0%", "maxSurge": 0})),
        &[&both_zero],
    );
    check_create(
        &DaemonSet,
        &rolling(&json!({"maxUnavailable": "5"})),
        &[&format!(
            "{at}.maxUnavailable: Invalid value: \"5\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )],
    );
    check_create(
        &DaemonSet,
        &rolling(&json!({"maxUnavailable": 0, "maxSurge": "101%"})),
        &[&format!(
            "{at}.maxSurge: Invalid value: \"101%\": must not be greater than 100%"
        )],
    );
}

#[test]
fn s1_3_6_an_unused_rolling_update_is_not_looked_at() {
    let strategy =
        json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}});
    check_create(&DaemonSet, &set(&json!({"updateStrategy": strategy})), &[]);
}

#[test]
fn s1_3_7_counts_are_not_negative() {
    check_create(
        &DaemonSet,
        &set(&json!({"minReadySeconds": -1, "revisionHistoryLimit": -1})),
        &[
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
            "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        ],
    );
    check_create(&DaemonSet, &set(&json!({"revisionHistoryLimit": 0})), &[]);
}

#[test]
fn s1_3_8_the_selector_is_immutable() {
    let old = created(&DaemonSet, &set(&json!({})));
    let new = updated(&old, |new| {
        new["spec"]["selector"] =
            json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
    });
    check(
        &DaemonSet.validate_update(&new, &old),
        &[
            "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Exists\"}]}: field is immutable",
        ],
    );
    // It is named before what is wrong with the template.
    let both = updated(&old, |new| {
        new["spec"]["selector"] = json!({"matchLabels": {"other": "x"}});
        new["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    });
    let errors = DaemonSet.validate_update(&both, &old);
    let fields: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(
        fields.len() > 1 && fields[0].ends_with("field is immutable"),
        "{fields:?}"
    );
    let same = updated(&old, |new| {
        new["spec"]["selector"]["matchExpressions"] = json!([]);
    });
    check(&DaemonSet.validate_update(&same, &old), &[]);
}

#[test]
fn s1_3_10_collisions_are_never_forgotten() {
    let old = json!({"status": {"collisionCount": 2}});
    let refused = |status: &Value, shown: &str| {
        check(
            &DaemonSet.validate_status_update(&json!({"status": status}), &old),
            &[&format!(
                "status.collisionCount: Invalid value: {shown}: cannot be decremented"
            )],
        );
    };
    refused(&json!({"collisionCount": 1}), "1");
    refused(&json!({}), "0");
    let kept = json!({"status": {"collisionCount": 2}});
    check(&DaemonSet.validate_status_update(&kept, &old), &[]);
    check(
        &DaemonSet.validate_status_update(&json!({"status": {"numberReady": -1}}), &json!({})),
        &["status.numberReady: Invalid value: -1: must be greater than or equal to 0"],
    );
}

#[test]
fn s1_3_13_templates_may_leave_the_host_port_open() {
    let mut given = set(&json!({}));
    given["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    given["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
    check_create(&DaemonSet, &given, &[]);
}

#[test]
fn s1_3_16_a_template_may_name_its_node() {
    let mut given = set(&json!({}));
    given["spec"]["template"]["spec"]["nodeName"] = json!("n1");
    given["spec"]["template"]["metadata"]["finalizers"] = json!(["a.com/f"]);
    check_create(&DaemonSet, &given, &[]);
}

#[test]
fn s1_3_19_warnings_are_given_when_the_template_changes() {
    let mut given = set(&json!({}));
    given["spec"]["template"]["spec"]["nodeSelector"] = json!({"beta.kubernetes.io/os": "linux"});
    let old = created(&DaemonSet, &given);
    let warning = "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead";
    assert_eq!(DaemonSet.warnings(&old, None), [warning]);
    let same = updated(&old, |new| new["spec"]["minReadySeconds"] = json!(1));
    assert_eq!(DaemonSet.warnings(&same, Some(&old)), Vec::<String>::new());
    let other = updated(&old, |new| {
        new["spec"]["template"]["spec"]["hostPID"] = json!(true);
    });
    assert_eq!(DaemonSet.warnings(&other, Some(&old)), [warning]);
}

#[test]
fn s1_4_1_a_new_set_has_counted_nothing() {
    let mut given = set(&json!({}));
    given["status"] = json!({"numberReady": 7});
    let made = created(&DaemonSet, &given);
    assert_eq!(
        made["status"],
        json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0})
    );
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["annotations"][GENERATION], "1");
}

#[test]
fn s1_4_1_a_count_brought_along_is_kept_on_create() {
    let mut given = set(&json!({}));
    for (brought, kept) in [("7", "7"), ("0", "1"), ("-3", "1")] {
        given["metadata"]["annotations"] = json!({GENERATION: brought});
        let made = created(&DaemonSet, &given);
        assert_eq!(made["metadata"]["annotations"][GENERATION], kept);
    }
    given["metadata"]["annotations"] = json!({GENERATION: "soon"});
    check_create(
        &DaemonSet,
        &given,
        &[
            "metadata.annotations[deprecated.daemonset.template.generation]: Invalid value: \"soon\": strconv.ParseInt: parsing \"soon\": invalid syntax",
        ],
    );
}

#[test]
fn s1_4_2_changes_are_counted_apart() {
    let old = created(&DaemonSet, &set(&json!({})));
    let counts = |new: &Value| {
        let template = new["metadata"]["annotations"][GENERATION].clone();
        (new["metadata"]["generation"].clone(), template)
    };
    let template = updated(&old, |new| {
        new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("i:2");
    });
    assert_eq!(counts(&template), (json!(2), json!("2")));
    let other = updated(&old, |new| new["spec"]["minReadySeconds"] = json!(1));
    assert_eq!(counts(&other), (json!(2), json!("1")));
    let labels = updated(&old, |new| new["metadata"]["labels"] = json!({"a": "b"}));
    assert_eq!(counts(&labels), (json!(1), json!("1")));
    let edited = updated(&old, |new| {
        new["metadata"]["annotations"] = json!({GENERATION: "9"});
    });
    assert_eq!(counts(&edited), (json!(1), json!("1")));
}

#[test]
fn s1_4_3_a_status_write_keeps_the_spec_and_takes_the_metadata() {
    let old = created(&DaemonSet, &set(&json!({})));
    let mut new = json!({
        "metadata": {"name": "agent", "labels": {"a": "b"}},
        "spec": {"selector": null},
        "status": {"numberReady": 1},
    });
    DaemonSet.prepare_status_update(&mut new, &old);
    assert_eq!(new["spec"], old["spec"]);
    assert_eq!(new["metadata"]["generation"], 1);
    assert_eq!(new["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(new["metadata"]["annotations"][GENERATION], "1");
    assert_eq!(new["status"], json!({"numberReady": 1}));
}

#[test]
fn s1_4_5_cosmetic_edits_count_nothing() {
    let old = created(&DaemonSet, &set(&json!({})));
    let new = updated(&old, |new| {
        new["spec"]["template"]["spec"]["tolerations"] = json!([]);
        new["spec"]["template"]["metadata"]["annotations"] = json!({});
    });
    assert_eq!(new["metadata"]["generation"], 1);
}

/// What a user of `kubectl` reads for these errors.
fn printed(kind: &str, name: &str, errors: &[FieldError]) -> String {
    let head = format!("The {kind} \"{name}\" is invalid:");
    match errors {
        [one] => format!("{head} {one}"),
        many => many
            .iter()
            .fold(head, |text, error| format!("{text}\n* {error}")),
    }
}

#[test]
fn recorded_answers_are_given_word_for_word() {
    let recorded: Value =
        serde_json::from_str(include_str!("../../../tests/data/bad-manifests.json"))
            .expect("the recording is JSON");
    let mut compared = 0;
    for entry in recorded.as_array().expect("a list of examples") {
        let manifest = &entry["manifest"];
        let kind = manifest["kind"].as_str().expect("a kind");
        let expected = entry["kubectl_prints"].as_str().expect("what was printed");
        let strategy: &dyn Strategy = match kind {
            "DaemonSet" => &DaemonSet,
            "Pod" => &Pod,
            "ControllerRevision" => &ControllerRevision,
            _ => continue,
        };
        if !expected.starts_with("The ") {
            continue;
        }
        let mut object = manifest.clone();
        object["metadata"]["namespace"] = json!("default");
        let object = created(strategy, &object);
        let mut errors = metadata_errors(&object);
        errors.extend(strategy.validate_create(&object));
        let name = object["metadata"]["name"].as_str().expect("a name");
        // Upstream writes two blanks between examples, which the recording has as one.
        let printed = printed(kind, name, &errors).replace("  ", " ");
        assert_eq!(printed, expected, "{}", entry["name"]);
        compared += 1;
    }
    assert_eq!(compared, 37, "examples about these kinds");
}

fn metadata_errors(object: &Value) -> Errors {
    let at = Path::new("metadata");
    meta::validate_create(&object["metadata"], true, NameRule::Subdomain, &at)
}
