//! Whole pods, as users write them and as they come back.

use serde_json::{Value, json};

use super::Pod;
use crate::kinds::Strategy as _;
use crate::kinds::testing::{check, check_create, created};

fn pod(spec: &Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "d"}, "spec": spec})
}

fn with(fields: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
    for (key, value) in fields.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    pod(&spec)
}

fn with_container(fields: &Value) -> Value {
    let mut container = json!({"name": "c", "image": "i:1"});
    for (key, value) in fields.as_object().expect("an object") {
        container[key] = value.clone();
    }
    pod(&json!({"containers": [container]}))
}

#[test]
fn a_small_pod_is_filled_in() {
    let made = created(
        &Pod,
        &pod(&json!({"containers": [{"name": "c", "image": "i"}]})),
    );
    assert_eq!(
        made,
        json!({
            "metadata": {"name": "p", "namespace": "d", "generation": 1},
            "spec": {
                "containers": [{
                    "name": "c",
                    "image": "i",
                    "imagePullPolicy": "Always",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst",
                "enableServiceLinks": true,
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        })
    );
    check(&Pod.validate_create(&made), &[]);
}

#[test]
fn defaults_reach_every_corner_and_change_nothing_twice() {
    let mut made = pod(&json!({
        "hostNetwork": true,
        "serviceAccountName": "sa",
        "containers": [{
            "name": "c", "image": "i:1",
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}},
            "env": [
                {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            ],
            "livenessProbe": {"httpGet": {"port": 80}},
            "readinessProbe": {"grpc": {"port": 80}},
        }],
        "volumes": [
            {"name": "e"},
            {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        ],
    }));
    Pod.default(&mut made);
    let spec = &made["spec"];
    assert_eq!(spec["serviceAccount"], "sa");
    let container = &spec["containers"][0];
    assert_eq!(
        container["ports"][0],
        json!({"containerPort": 80, "hostPort": 80, "protocol": "TCP"})
    );
    assert_eq!(container["resources"]["requests"], json!({"cpu": "1"}));
    assert_eq!(
        container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"],
        "v1"
    );
    assert_eq!(
        container["env"][1]["valueFrom"]["resourceFieldRef"]["divisor"],
        "0"
    );
    assert_eq!(
        container["livenessProbe"],
        json!({
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        })
    );
    assert_eq!(container["readinessProbe"]["grpc"]["service"], "");
    assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
    assert_eq!(spec["volumes"][1]["hostPath"]["type"], "");
    assert_eq!(spec["volumes"][2]["secret"]["defaultMode"], 420);
    assert_eq!(
        spec["volumes"][3]["projected"],
        json!({"defaultMode": 420, "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]})
    );
    check(&Pod.validate_create(&made), &[]);
    let once = made.clone();
    Pod.default(&mut made);
    assert_eq!(made, once);
}

#[test]
fn gates_hold_a_pod_back() {
    let made = created(
        &Pod,
        &with(&json!({"schedulingGates": [{"name": "a.com/g"}]})),
    );
    assert_eq!(made["status"]["conditions"][0]["reason"], "SchedulingGated");
    check_create(
        &Pod,
        &with(&json!({"schedulingGates": [{"name": "g"}], "nodeName": "n"})),
        &["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    );
}

#[test]
fn containers_have_names_of_their_own() {
    let twice = json!([{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]);
    check_create(
        &Pod,
        &pod(&json!({"containers": twice})),
        &["spec.containers[1].name: Duplicate value: \"a\""],
    );
    check_create(
        &Pod,
        &with(&json!({"initContainers": [{"name": "c", "image": "i"}]})),
        &["spec.initContainers[0].name: Duplicate value: \"c\""],
    );
    check_create(
        &Pod,
        &json!({"metadata": {"name": "p"}}),
        &["spec.containers: Required value"],
    );
}

#[test]
fn s1_3_12_host_ports_are_taken_once() {
    let port = json!([{"containerPort": 80, "hostPort": 80}]);
    let two = json!({"containers": [
        {"name": "a", "image": "i", "ports": port}, {"name": "b", "image": "i", "ports": port}]});
    check_create(
        &Pod,
        &pod(&two),
        &["spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\""],
    );
    let mut inits = with(&json!({"initContainers": [
        {"name": "a", "image": "i", "ports": port}, {"name": "b", "image": "i", "ports": port}]}));
    check_create(&Pod, &inits, &[]);
    inits["spec"]["initContainers"][1]["ports"] = json!([port[0], port[0]]);
    check_create(
        &Pod,
        &inits,
        &["spec.initContainers[0].ports[1].hostPort: Duplicate value: \"TCP//80\""],
    );
}

#[test]
fn s1_3_13_pods_on_the_host_network_use_its_ports() {
    let made = created(
        &Pod,
        &pod(&json!({"hostNetwork": true,
            "initContainers": [{"name": "i", "image": "i", "ports": [{"containerPort": 81}]}],
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]})),
    );
    assert_eq!(made["spec"]["containers"][0]["ports"][0]["hostPort"], 80);
    assert_eq!(
        made["spec"]["initContainers"][0]["ports"][0]["hostPort"],
        81
    );
}

#[test]
fn s1_3_14_own_users_exclude_the_hosts_namespaces() {
    check_create(
        &Pod,
        &with(&json!({"hostUsers": false, "hostPID": true, "hostIPC": true})),
        &[
            "spec.HostPID: Forbidden: when `pod.Spec.HostUsers` is false",
            "spec.HostIPC: Forbidden: when `pod.Spec.HostUsers` is false",
        ],
    );
}

#[test]
fn ports_are_named_and_numbered() {
    check_create(
        &Pod,
        &with_container(&json!({"ports": [
            {"containerPort": 80, "name": "web"},
            {"containerPort": 70000, "name": "web"},
            {"name": "none", "protocol": "ICMP"},
        ]})),
        &[
            "spec.containers[0].ports[1].name: Duplicate value: \"web\"",
            "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.containers[0].ports[2].containerPort: Required value",
            "spec.containers[0].ports[2].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ],
    );
}

#[test]
fn privileges_do_not_contradict_each_other() {
    check_create(
        &Pod,
        &with_container(
            &json!({"securityContext": {"privileged": true, "allowPrivilegeEscalation": false}}),
        ),
        &[
            "spec.containers[0].securityContext: Invalid value: {\"Capabilities\":null,\"Privileged\":true,\"SELinuxOptions\":null,\"WindowsOptions\":null,\"RunAsUser\":null,\"RunAsGroup\":null,\"RunAsNonRoot\":null,\"ReadOnlyRootFilesystem\":null,\"AllowPrivilegeEscalation\":false,\"ProcMount\":null,\"SeccompProfile\":null,\"AppArmorProfile\":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ],
    );
    check_create(
        &Pod,
        &with_container(
            &json!({"securityContext": {"runAsUser": -1, "seccompProfile": {"type": "Localhost"}}}),
        ),
        &[
            "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            "spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
        ],
    );
}

#[test]
fn the_pods_own_security_context_is_checked() {
    check_create(
        &Pod,
        &with(&json!({"hostNetwork": true, "securityContext": {
            "fsGroupChangePolicy": "Sometimes",
            "sysctls": [{"name": "net.core.somaxconn", "value": "1"}, {"name": "UPPER", "value": "1"}],
        }})),
        &[
            "spec.securityContext.sysctls[0].name: Invalid value: \"net.core.somaxconn\": may not be specified when 'hostNetwork' is true",
            "spec.securityContext.sysctls[1].name: Invalid value: \"UPPER\": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnRootMismatch\"",
        ],
    );
}

#[test]
fn dns_none_needs_servers() {
    check_create(
        &Pod,
        &with(&json!({"dnsPolicy": "None"})),
        &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    );
    check_create(
        &Pod,
        &with(&json!({"dnsConfig": {"nameservers": ["x"], "options": [{"value": "1"}]}})),
        &[
            "spec.dnsConfig.nameservers[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            "spec.dnsConfig.options[0]: Required value: must not be empty",
        ],
    );
}

#[test]
fn init_containers_have_probes_only_as_sidecars() {
    let init = json!({"name": "i", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}});
    check_create(
        &Pod,
        &with(&json!({"initContainers": [init]})),
        &[
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ],
    );
    let mut sidecar = init;
    sidecar["restartPolicy"] = json!("Always");
    check_create(&Pod, &with(&json!({"initContainers": [sidecar]})), &[]);
    sidecar["restartPolicy"] = json!("Sometimes");
    check_create(
        &Pod,
        &with(
            &json!({"initContainers": [{"name": "i", "image": "i", "restartPolicy": "Sometimes"}]}),
        ),
        &[
            "spec.initContainers[0].restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\", \"OnFailure\"",
        ],
    );
}

#[test]
fn restart_rules_need_a_policy() {
    check_create(
        &Pod,
        &with_container(
            &json!({"restartPolicyRules": [{"action": "Stop", "exitCodes": {"operator": "Equals", "values": [3]}}]}),
        ),
        &[
            "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \"Restart\", \"RestartAllContainers\"",
            "spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: \"Equals\": supported values: \"In\", \"NotIn\"",
        ],
    );
}

#[test]
fn systems_do_not_mix() {
    check_create(
        &Pod,
        &with(
            &json!({"os": {"name": "windows"}, "hostPID": true, "securityContext": {"runAsUser": 1}}),
        ),
        &[
            "spec.hostPID: Forbidden: cannot be set for a windows pod",
            "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
        ],
    );
    check_create(
        &Pod,
        &with(&json!({"os": {"name": "plan9"}})),
        &["spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""],
    );
}

#[test]
fn odd_names_and_numbers_are_refused() {
    check_create(
        &Pod,
        &with(
            &json!({"activeDeadlineSeconds": 0, "hostAliases": [{"ip": "x"}], "preemptionPolicy": "Often"}),
        ),
        &[
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            "spec.hostAliases[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            "spec.preemptionPolicy: Unsupported value: \"Often\": supported values: \"PreemptLowerPriority\", \"Never\"",
        ],
    );
}

#[test]
fn a_name_that_is_no_label_is_warned_of() {
    let mut made = created(&Pod, &with(&json!({})));
    made["metadata"]["name"] = json!("a.b");
    let warned = Pod.warnings(&made, None);
    assert!(
        warned[0].starts_with("metadata.name: this is used in the Pod's hostname"),
        "{warned:?}"
    );
    assert_eq!(Pod.warnings(&made, Some(&made)), Vec::<String>::new());
}
