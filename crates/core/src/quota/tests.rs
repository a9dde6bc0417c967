use serde_json::json;

use super::*;
use kennel_types::Timestamp;

const PODS: Kind<'_> = Kind {
    group: "",
    plural: "pods",
    measurement: Measurement::Pod,
};

fn kind<'a>(group: &'a str, plural: &'a str) -> Kind<'a> {
    Kind::of(group, plural)
}

fn quota(spec: Value) -> Quota {
    let mut object = json!({"metadata": {"name": "q"}});
    object["spec"] = spec;
    Quota::of(&object)
}

const NOW: Timestamp = Timestamp::EPOCH;

fn measure(kind: Kind<'_>, object: &Value) -> Measured {
    Measured::of(kind, object)
}

fn pod(resources: Value) -> Value {
    let mut pod = json!({"spec": {"containers": [{"name": "c"}]}});
    pod["spec"]["containers"][0]["resources"] = resources;
    pod
}

fn shown(amounts: &Amounts) -> String {
    show(amounts, &amounts.keys().collect())
}

fn check_usage(kind: Kind<'_>, object: &Value, expected: &str) {
    let found = measure(kind, object);
    assert_eq!(shown(&found.usage), expected, "{object}");
}

#[test]
fn objects_are_counted_by_kind() {
    let nothing = json!({});
    check_usage(
        kind("", "configmaps"),
        &nothing,
        "configmaps=1,count/configmaps=1",
    );
    check_usage(
        kind("apps", "daemonsets"),
        &nothing,
        "count/daemonsets.apps=1",
    );
    let service = |spec: Value| json!({"spec": spec});
    check_usage(
        kind("", "services"),
        &service(json!({"type": "NodePort", "ports": [{}, {}]})),
        "count/services=1,services=1,services.loadbalancers=0,services.nodeports=2",
    );
    check_usage(
        kind("", "services"),
        &service(
            json!({"type": "LoadBalancer", "ports": [{"nodePort": 30000}, {}],
            "allocateLoadBalancerNodePorts": false}),
        ),
        "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1",
    );
    check_usage(
        kind("", "persistentvolumeclaims"),
        &json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}}),
        "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,\
         gold.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi",
    );
    assert!(!kind("", "events").uses("count/events"));
    assert!(!kind("apps", "pods").uses("pods"));
}

#[test]
fn pods_are_measured_by_requests_and_limits() {
    let resources = json!({
        "requests": {"cpu": "100m", "memory": "1Mi", "hugepages-2Mi": "2Mi", "a.b/gpu": "1"},
        "limits": {"cpu": "1", "a.b/gpu": "1"},
    });
    let words = "count/pods=1,cpu=100m,hugepages-2Mi=2Mi,limits.cpu=1,memory=1Mi,pods=1,requests.a.b/gpu=1,\
        requests.cpu=100m,requests.hugepages-2Mi=2Mi,requests.memory=1Mi";
    check_usage(PODS, &pod(resources), words);
}

#[test]
fn a_pod_that_is_over_is_an_object_and_no_more() {
    let mut failed = pod(json!({"requests": {"cpu": "1"}}));
    failed["status"] = json!({"phase": "Failed"});
    check_usage(PODS, &failed, "count/pods=1");
    let mut stuck = pod(json!({}));
    stuck["metadata"] = json!({
        "deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30,
    });
    let quota = quota(json!({"hard": {"pods": "1", "count/pods": "1"}}));
    let at = |seconds| {
        let now = Timestamp::from_secs(seconds);
        shown(&quota.used(PODS, [&measure(PODS, &stuck)], now))
    };
    assert_eq!(at(90), "count/pods=1,pods=1");
    assert_eq!(at(91), "count/pods=1,pods=0");
}

fn check_fit(spec: Value, new: &Value, used: &[&Value], expected: &str) {
    let quota = quota(spec);
    let used: Vec<Measured> = used.iter().map(|object| measure(PODS, object)).collect();
    let fits = check(
        std::slice::from_ref(&quota),
        PODS,
        &measure(PODS, new),
        None,
        |quota| quota.used(PODS, &used, NOW),
    );
    let words = fits.map_or_else(|refusal| refusal.to_string(), |()| String::new());
    assert_eq!(words, expected, "{quota:?} {new}");
}

#[test]
fn what_fits_is_admitted_and_what_exceeds_is_named() {
    let small = pod(json!({"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}));
    let hard = || json!({"hard": {"pods": "2", "requests.cpu": "1", "limits.cpu": "3"}});
    check_fit(hard(), &small, &[&small], "");
    check_fit(
        hard(),
        &small,
        &[&small, &small],
        "exceeded quota: q, requested: pods=1,requests.cpu=500m, used: pods=2,requests.cpu=1, limited: pods=2,requests.cpu=1",
    );
    // A quota that the namespace outgrew before it was set does not block what it does not limit.
    check_fit(json!({"hard": {"services": "0"}}), &small, &[&small], "");
}

#[test]
fn limited_compute_must_be_specified_by_each_container() {
    let mut two = pod(json!({"limits": {"cpu": "1"}}));
    two["spec"]["initContainers"] = json!([{"name": "b"}, {"name": "a"}]);
    let hard = json!({"hard": {"limits.cpu": "9", "requests.memory": "1Gi", "pods": "9"}});
    check_fit(
        hard.clone(),
        &two,
        &[],
        "failed quota: q: must specify limits.cpu for: a,b; requests.memory for: a,b,c",
    );
    two["spec"]["resources"] = json!({"limits": {"cpu": "1"}});
    check_fit(hard, &two, &[], "");
}

#[test]
fn scopes_select_pods() {
    let plain = pod(json!({}));
    let mut limited = pod(json!({"limits": {"cpu": "1"}}));
    limited["spec"]["activeDeadlineSeconds"] = 5.into();
    limited["spec"]["priorityClassName"] = "high".into();
    let selects = |spec: Value, expected: [bool; 2]| {
        let mut whole = json!({"hard": {"pods": "1"}});
        for (key, value) in spec.as_object().unwrap() {
            whole[key] = value.clone();
        }
        let quota = quota(whole);
        let found = [&plain, &limited].map(|pod| quota.matches(PODS, &measure(PODS, pod)));
        assert_eq!(found, expected, "{spec}");
        let other = kind("", "services");
        assert!(!quota.matches(other, &measure(other, &json!({}))));
    };
    selects(json!({}), [true, true]);
    selects(json!({"scopes": ["BestEffort"]}), [true, false]);
    selects(
        json!({"scopes": ["NotBestEffort", "Terminating"]}),
        [false, true],
    );
    selects(json!({"scopes": ["NotTerminating"]}), [true, false]);
    let classes = |operator: &str, values: Value| {
        json!({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": operator, "values": values}]}})
    };
    selects(classes("In", json!(["high", "low"])), [false, true]);
    selects(classes("NotIn", json!(["high"])), [true, false]);
    selects(classes("Exists", json!([])), [false, true]);
    selects(classes("DoesNotExist", json!([])), [true, false]);
}

#[test]
fn an_update_is_charged_for_its_growth() {
    let claims = kind("", "persistentvolumeclaims");
    let claim = |size: &str| {
        measure(
            claims,
            &json!({"spec": {"resources": {"requests": {"storage": size}}}}),
        )
    };
    let quota = quota(json!({"hard": {"requests.storage": "10Gi", "persistentvolumeclaims": "1"}}));
    let old = claim("4Gi");
    let fits = |size: &str| {
        let used = |quota: &Quota| quota.used(claims, [&old, &claim("5Gi")], NOW);
        check(
            std::slice::from_ref(&quota),
            claims,
            &claim(size),
            Some(&old),
            used,
        )
    };
    assert_eq!(fits("5Gi"), Ok(()));
    let words = "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=9Gi, limited: requests.storage=10Gi";
    assert_eq!(fits("6Gi").unwrap_err().to_string(), words);
}

#[test]
fn usage_of_a_quota_has_all_its_names() {
    let quota = quota(json!({"hard": {"pods": "9", "limits.cpu": "9", "services": "9"}}));
    let pods = [
        pod(json!({"limits": {"cpu": "1"}})),
        pod(json!({"limits": {"cpu": "1500m"}})),
    ];
    let pods = pods.map(|pod| measure(PODS, &pod));
    assert_eq!(
        shown(&quota.used(PODS, &pods, NOW)),
        "limits.cpu=2500m,pods=2"
    );
    assert_eq!(shown(&quota.used(PODS, [], NOW)), "limits.cpu=0,pods=0");
}
