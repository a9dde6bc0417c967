//! The words are upstream's: people search for them.

use serde_json::{Value, json};

use super::*;

const BASELINE_LATEST: LevelVersion = at(Level::Baseline, Version::Latest);
const RESTRICTED_LATEST: LevelVersion = at(Level::Restricted, Version::Latest);

const fn at(level: Level, version: Version) -> LevelVersion {
    LevelVersion { level, version }
}

/// Lays the fields of `over` over those of `base`. Lists are replaced.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn check_pod(at: LevelVersion, metadata: &Value, spec: &Value, expected: &str) {
    let found = evaluate(at, metadata, spec);
    assert_eq!(found.to_string(), expected, "{at} {metadata} {spec}");
}

/// Checks a pod of one container `c`.
fn check(at: LevelVersion, spec: Value, container: Value, expected: &str) {
    let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
    merge(&mut whole["containers"][0], container);
    merge(&mut whole, spec);
    check_pod(at, &json!({}), &whole, expected);
}

fn baseline(spec: Value, container: Value, expected: &str) {
    check(BASELINE_LATEST, spec, container, expected);
}

/// Checks a pod that is restricted but for these fields.
fn restricted_at(version: Version, spec: Value, container: Value, expected: &str) {
    let mut whole_spec = json!({"securityContext": {
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
    }});
    let mut whole = json!({"securityContext": {
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
    }});
    merge(&mut whole_spec, spec);
    merge(&mut whole, container);
    check(at(Level::Restricted, version), whole_spec, whole, expected);
}

fn restricted(spec: Value, container: Value, expected: &str) {
    restricted_at(Version::Latest, spec, container, expected);
}

fn security(fields: Value) -> Value {
    let mut tree = json!({});
    tree["securityContext"] = fields;
    tree
}

#[test]
fn a_plain_pod_is_baseline_and_violates_four_rules_of_restricted() {
    baseline(json!({}), json!({}), "");
    let words = "allowPrivilegeEscalation != false (container \"c\" must set securityContext.\
        allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set \
        securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" \
        must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set \
        securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
    check(RESTRICTED_LATEST, json!({}), json!({}), words);
    let privileged = at(Level::Privileged, Version::Latest);
    check(privileged, json!({"hostPID": true}), json!({}), "");
    restricted(json!({}), json!({}), "");
}

#[test]
fn baseline_forbids_what_reaches_the_host() {
    let host = json!({"hostNetwork": true, "hostPID": true, "hostIPC": true});
    baseline(
        host,
        json!({}),
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    );
    let volumes = json!({"volumes": [
        {"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "emptyDir": {}},
        {"name": "d", "hostPath": {"path": "/etc"}},
    ]});
    baseline(
        volumes,
        json!({}),
        "hostPath volumes (volumes \"a\", \"d\")",
    );
    let one = json!({"ports": [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]});
    baseline(
        json!({}),
        one,
        "hostPort (container \"c\" uses hostPort 80)",
    );
    let two = json!({"containers": [
        {"name": "a", "ports": [{"hostPort": 9}, {"hostPort": 80}]},
        {"name": "b", "ports": [{"hostPort": 80}]},
    ]});
    baseline(
        two,
        json!({}),
        "hostPort (containers \"a\", \"b\" use hostPorts 80, 9)",
    );
    baseline(
        json!({}),
        security(json!({"privileged": true})),
        "privileged (container \"c\" must not set securityContext.privileged=true)",
    );
    let windows = security(json!({"windowsOptions": {"hostProcess": true}}));
    baseline(
        windows.clone(),
        windows,
        "hostProcess (pod and container \"c\" must not set securityContext.windowsOptions.hostProcess=true)",
    );
}

#[test]
fn init_and_ephemeral_containers_count() {
    let spec = json!({
        "initContainers": [{"name": "i", "securityContext": {"privileged": true}}],
        "containers": [{"name": "c"}],
        "ephemeralContainers": [{"name": "e", "securityContext": {"privileged": true}}],
    });
    let words = "privileged (containers \"i\", \"e\" must not set securityContext.privileged=true)";
    check_pod(BASELINE_LATEST, &json!({}), &spec, words);
}

#[test]
fn capabilities() {
    let add = |names: Value| security(json!({"capabilities": {"add": names}}));
    baseline(json!({}), add(json!(["CHOWN", "NET_BIND_SERVICE"])), "");
    baseline(
        json!({}),
        add(json!(["SYS_TIME", "NET_RAW", "KILL"])),
        "non-default capabilities (container \"c\" must not include \"NET_RAW\", \"SYS_TIME\" in securityContext.capabilities.add)",
    );
    restricted(json!({}), add(json!(["NET_BIND_SERVICE"])), "");
    let both = security(json!({"capabilities": {"add": ["CHOWN"], "drop": ["KILL"]}}));
    restricted(
        json!({}),
        both.clone(),
        "unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]; \
         container \"c\" must not include \"CHOWN\" in securityContext.capabilities.add)",
    );
    // Before v1.22 the level had no rule of its own.
    restricted_at(Version::Minor(21), json!({}), both, "");
    restricted(
        json!({"os": {"name": "windows"}}),
        add(json!(["CHOWN"])),
        "",
    );
}

#[test]
fn probes_and_handlers_stay_on_the_pod() {
    let container = json!({
        "livenessProbe": {"httpGet": {"host": "b.example", "port": 1}},
        "lifecycle": {"preStop": {"tcpSocket": {"host": "a.example", "port": 1}}},
    });
    let words = "probe or lifecycle host (container \"c\" uses probe or lifecycle hosts \"a.example\", \"b.example\")";
    baseline(json!({}), container.clone(), words);
    let before = at(Level::Baseline, Version::Minor(33));
    check(before, json!({}), container, "");
}

#[test]
fn mandatory_access_control() {
    let options = |fields: Value| security(json!({"seLinuxOptions": fields}));
    baseline(options(json!({"type": "container_t"})), json!({}), "");
    baseline(
        options(json!({"type": "spc_t"})),
        options(json!({"type": "foo", "user": "u", "role": "r"})),
        "seLinuxOptions (pod and container \"c\" set forbidden securityContext.seLinuxOptions: \
         types \"foo\", \"spc_t\"; user may not be set; role may not be set)",
    );
    let engine = || options(json!({"type": "container_engine_t"}));
    baseline(engine(), json!({}), "");
    let words = "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"container_engine_t\")";
    let before = at(Level::Baseline, Version::Minor(30));
    check(before, engine(), json!({}), words);
    baseline(
        security(json!({"appArmorProfile": {"type": "Unconfined"}})),
        json!({}),
        "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
    );
    let key = "container.apparmor.security.beta.kubernetes.io/c";
    let metadata = json!({"annotations": {key: "unconfined"}});
    let words = format!(
        "forbidden AppArmor profile (annotation must not set AppArmor profile type to \"{key}=\"unconfined\"\")"
    );
    let spec = json!({"containers": [{"name": "c"}]});
    check_pod(BASELINE_LATEST, &metadata, &spec, &words);
}

#[test]
fn proc_mounts_and_user_namespaces() {
    let unmasked = || security(json!({"procMount": "Unmasked"}));
    let words =
        "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")";
    baseline(json!({}), unmasked(), words);
    let user_namespace = || json!({"hostUsers": false});
    baseline(user_namespace(), unmasked(), "");
    check(
        at(Level::Baseline, Version::Minor(34)),
        user_namespace(),
        unmasked(),
        words,
    );
    restricted(user_namespace(), unmasked(), words);
}

#[test]
fn seccomp_profiles() {
    let profile = |kind: &str| security(json!({"seccompProfile": {"type": kind}}));
    let words = "seccompProfile (pod and container \"c\" must not set securityContext.seccompProfile.type to \"Unconfined\")";
    baseline(profile("Unconfined"), profile("Unconfined"), words);
    baseline(profile("Localhost"), json!({}), "");
    restricted(profile("Unconfined"), profile("Unconfined"), words);
    let key = "seccomp.security.alpha.kubernetes.io/pod";
    let metadata = json!({"annotations": {key: "unconfined"}});
    let spec = json!({"containers": [{"name": "c"}]});
    let words = format!("seccompProfile (forbidden annotation {key}=\"unconfined\")");
    let old = at(Level::Baseline, Version::Minor(18));
    check_pod(old, &metadata, &spec, &words);
    check_pod(BASELINE_LATEST, &metadata, &spec, "");
}

#[test]
fn sysctls_are_allowed_by_version() {
    let names = [
        "net.ipv4.tcp_rmem",
        "kernel.msgmax",
        "kernel.shm_rmid_forced",
    ];
    let sysctls: Vec<Value> = names.map(|name| json!({"name": name, "value": "1"})).into();
    let spec = security(json!({"sysctls": sysctls}));
    baseline(spec.clone(), json!({}), "forbidden sysctls (kernel.msgmax)");
    let words = "forbidden sysctls (net.ipv4.tcp_rmem, kernel.msgmax)";
    let before = at(Level::Baseline, Version::Minor(31));
    check(before, spec, json!({}), words);
}

#[test]
fn restricted_allows_few_volumes_and_no_root() {
    let volumes = json!({"volumes": [
        {"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "secret": {}},
        {"name": "d", "nfs": {}}, {"name": "e", "new": {}},
    ]});
    let words = "restricted volume types (volumes \"a\", \"d\", \"e\" use restricted volume types \"hostPath\", \"nfs\", \"unknown\")";
    restricted(volumes, json!({}), words);
    let root = || security(json!({"runAsNonRoot": false, "runAsUser": 0}));
    restricted(
        root(),
        root(),
        "runAsNonRoot != true (pod and container \"c\" must not set securityContext.runAsNonRoot=false), \
         runAsUser=0 (pod and container \"c\" must not set runAsUser=0)",
    );
    let mut in_namespace = root();
    in_namespace["hostUsers"] = false.into();
    restricted(in_namespace, root(), "");
    restricted(
        json!({}),
        security(json!({"allowPrivilegeEscalation": true})),
        "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false)",
    );
}

#[test]
fn versions_of_the_future_are_the_latest() {
    let spec = json!({"hostPID": true});
    let words = "host namespaces (hostPID=true)";
    check(
        at(Level::Baseline, Version::Minor(99)),
        spec,
        json!({}),
        words,
    );
}

fn policy_of(labels: &[(&str, &str)]) -> (Policy, Vec<LabelError>) {
    policy(|key| {
        let key = key.strip_prefix("pod-security.kubernetes.io/").unwrap();
        let found = labels.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value)
    })
}

#[test]
fn labels_set_the_policy() {
    let check = |labels: &[(&str, &str)], expected: [&str; 3]| {
        let (policy, errors) = policy_of(labels);
        let modes = [policy.enforce, policy.audit, policy.warn];
        assert_eq!(modes.map(|at| at.to_string()), expected, "{labels:?}");
        assert_eq!(errors, []);
    };
    let privileged = "privileged:latest";
    check(&[], [privileged; 3]);
    // Warnings follow the enforced level, unless they have one of their own.
    check(
        &[("enforce", "baseline"), ("enforce-version", "v1.20")],
        ["baseline:v1.20", privileged, "baseline:v1.20"],
    );
    check(
        &[
            ("enforce", "restricted"),
            ("warn", "baseline"),
            ("warn-version", "v1.0"),
        ],
        ["restricted:latest", privileged, "baseline:v1.0"],
    );
    check(
        &[("audit", "restricted"), ("audit-version", "latest")],
        [privileged, "restricted:latest", privileged],
    );
}

#[test]
fn wrong_labels_fail_closed_for_enforce_and_open_for_the_others() {
    let (policy, errors) = policy_of(&[
        ("enforce", "strict"),
        ("enforce-version", "v1.01"),
        ("audit", "x"),
        ("warn", ""),
    ]);
    assert_eq!(policy.enforce, RESTRICTED_LATEST);
    assert_eq!(policy.audit.level, Level::Privileged);
    assert_eq!(policy.warn.level, Level::Privileged);
    let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let level = "must be one of privileged, baseline, restricted";
    assert_eq!(
        words,
        [level, "must be \"latest\" or \"v1.x\"", level, level]
    );
    for wrong in ["v1", "v2.0", "1.20", "v1.", "v1.x", "v1.-1"] {
        assert!(wrong.parse::<Version>().is_err(), "{wrong}");
    }
}
