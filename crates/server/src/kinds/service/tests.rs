//! Tables of services, new and changed.

use super::super::testing::{check, check_create, check_update, created, updated};
use super::*;

fn service(spec: &Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": spec})
}

fn web(extra: &Value) -> Value {
    let mut object = service(&json!({"ports": [{"port": 80}], "selector": {"a": "b"}}));
    for (key, value) in extra.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

#[test]
fn what_users_leave_out_is_filled_in() {
    assert_eq!(
        created(&Service, &web(&json!({}))),
        json!({"metadata": {"name": "web"}, "spec": {"type": "ClusterIP",
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "selector": {"a": "b"},
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]},
            "status": {"loadBalancer": {}}})
    );
    let balancer = created(
        &Service,
        &web(&json!({"type": "LoadBalancer", "sessionAffinity": "ClientIP"})),
    );
    let spec = &balancer["spec"];
    assert_eq!(spec["externalTrafficPolicy"], "Cluster");
    assert_eq!(spec["allocateLoadBalancerNodePorts"], true);
    assert_eq!(
        spec["sessionAffinityConfig"],
        json!({"clientIP": {"timeoutSeconds": 10800}})
    );
    let open = created(&Service, &service(&json!({"clusterIP": "None"})));
    assert_eq!(open["spec"]["ipFamilyPolicy"], "RequireDualStack");
    assert_eq!(open["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(open["spec"]["clusterIPs"], json!(["None"]));
}

#[test]
fn ports_are_required_with_few_exceptions() {
    check_create(&Service, &web(&json!({})), &[]);
    check_create(
        &Service,
        &service(&json!({"selector": {"a": "b"}})),
        &["spec.ports: Required value"],
    );
    check_create(&Service, &service(&json!({"clusterIP": "None"})), &[]);
    check_create(
        &Service,
        &service(&json!({"type": "ExternalName", "externalName": "example.com."})),
        &[],
    );
}

#[test]
fn ports_have_names_numbers_and_protocols() {
    check_create(
        &Service,
        &service(&json!({"ports": [
            {"port": 80, "name": "a"},
            {"port": 0, "name": "a", "protocol": "X", "targetPort": "UP"},
            {"port": 80, "targetPort": 70000},
        ]})),
        &[
            "spec.ports[1].name: Duplicate value: \"a\"",
            "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \
             \"TCP\", \"UDP\"",
            "spec.ports[1].targetPort: Invalid value: \"UP\": must contain only alpha-numeric \
             characters (a-z, 0-9), and hyphens (-)",
            "spec.ports[1].targetPort: Invalid value: \"UP\": must contain at least one letter \
             (a-z)",
            "spec.ports[2].name: Required value",
            "spec.ports[2].targetPort: Invalid value: 70000: must be between 1 and 65535, \
             inclusive",
            "spec.ports[2]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":\
             null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
        ],
    );
    check_create(
        &Service,
        &service(&json!({"ports": [{"port": 80, "nodePort": 30080}]})),
        &["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
    );
}

#[test]
fn types() {
    check_create(
        &Service,
        &web(&json!({"type": "Odd"})),
        &[
            "spec.type: Unsupported value: \"Odd\": supported values: \"ClusterIP\", \
           \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ],
    );
    check_create(
        &Service,
        &web(&json!({"type": "NodePort", "clusterIP": "None"})),
        &[
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort \
           services",
        ],
    );
    check_create(
        &Service,
        &service(&json!({"type": "ExternalName", "clusterIP": "10.0.0.1"})),
        &[
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
            "spec.externalName: Required value",
        ],
    );
    check_create(
        &Service,
        &service(&json!({"type": "LoadBalancer", "ports": [{"port": 10250}]})),
        &[
            "spec.ports[0]: Invalid value: 10250: may not expose port 10250 externally since it is \
           used by kubelet",
        ],
    );
}

#[test]
fn addresses_and_families() {
    check_create(
        &Service,
        &web(&json!({"clusterIP": "nonsense"})),
        &[
            "spec.clusterIPs[0]: Invalid value: \"nonsense\": must be a valid IP address, (e.g. \
           10.9.8.7 or 2001:db8::ffff)",
        ],
    );
    check_create(
        &Service,
        &web(&json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]})),
        &["spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`"],
    );
    check_create(
        &Service,
        &web(&json!({"clusterIP": "::2"})),
        &[
            "spec.clusterIPs[0]: Invalid value: \"::2\": expected an IPv4 value as indicated by \
           `ipFamilies[0]`",
        ],
    );
    check_create(
        &Service,
        &web(&json!({"ipFamilyPolicy": "RequireDualStack", "externalIPs": ["127.0.0.1"]})),
        &[
            "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range \
             (127.0.0.0/8, ::1/128)",
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not \
             configured for dual-stack services",
        ],
    );
    check_create(
        &Service,
        &web(&json!({"ipFamilies": ["IPv6"]})),
        &["spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"],
    );
}

#[test]
fn affinity_and_traffic() {
    check_create(
        &Service,
        &web(&json!({"sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}}})),
        &[
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be \
           greater than 0 and less than 86400",
        ],
    );
    check_create(
        &Service,
        &web(
            &json!({"sessionAffinity": "Odd", "externalTrafficPolicy": "Local",
            "internalTrafficPolicy": "Odd", "healthCheckNodePort": 30000,
            "trafficDistribution": "Odd"}),
        ),
        &[
            "spec.sessionAffinity: Unsupported value: \"Odd\": supported values: \"ClientIP\", \
             \"None\"",
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for \
             externally-accessible services",
            "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is \
             'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            "spec.internalTrafficPolicy: Unsupported value: \"Odd\": supported values: \
             \"Cluster\", \"Local\"",
            "spec.trafficDistribution: Unsupported value: \"Odd\": supported values: \
             \"PreferClose\", \"PreferSameNode\", \"PreferSameZone\"",
        ],
    );
    check_create(
        &Service,
        &web(&json!({"loadBalancerClass": "a/b", "loadBalancerSourceRanges": ["x"]})),
        &[
            "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is \
             'LoadBalancer'",
            "spec.LoadBalancerSourceRanges[0]: Invalid value: \"x\": must be a valid CIDR value, \
             (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ],
    );
}

#[test]
fn an_update_keeps_what_was_allocated() {
    let mut old = created(&Service, &web(&json!({"type": "NodePort"})));
    old["spec"]["clusterIP"] = json!("10.96.1.1");
    old["spec"]["clusterIPs"] = json!(["10.96.1.1"]);
    old["spec"]["ports"][0]["nodePort"] = json!(30080);
    let new = updated(&Service, &web(&json!({"type": "NodePort"})), &old);
    assert_eq!(new, old);
    check(&Service.validate_update(&new, &old), &[]);
    let mut moved = old.clone();
    moved["spec"]["type"] = json!("ClusterIP");
    let new = updated(&Service, &moved, &old);
    assert!(!has(&new["spec"]["ports"][0], "nodePort"));
    assert!(!has(&new, "spec.externalTrafficPolicy"));
    check(&Service.validate_update(&new, &old), &[]);
    let name = service(&json!({"type": "ExternalName", "externalName": "a.b",
        "clusterIP": "10.96.1.1", "clusterIPs": ["10.96.1.1"], "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack"}));
    let new = updated(&Service, &name, &old);
    assert!(!has(&new, "spec.clusterIP") && !has(&new, "spec.ipFamilies"));
    check(&Service.validate_update(&new, &old), &[]);
}

#[test]
fn the_address_of_a_service_stays() {
    let old = web(&json!({"clusterIP": "10.96.1.1"}));
    check_update(
        &Service,
        &web(&json!({"clusterIP": "10.96.1.2"})),
        &old,
        &["spec.clusterIPs[0]: Invalid value: [\"10.96.1.2\"]: may not change once set"],
    );
    check_update(&Service, &web(&json!({})), &old, &[]);
    check_update(
        &Service,
        &web(&json!({"type": "LoadBalancer", "loadBalancerClass": "a/b"})),
        &web(&json!({"type": "LoadBalancer"})),
        &["spec.loadBalancerClass: Invalid value: \"a/b\": may not change once set"],
    );
}

#[test]
fn a_load_balancer_reports_addresses() {
    let status = json!({"status": {"loadBalancer": {"ingress": [
        {"ip": "1.2.3.4"}, {"ip": "x"}, {"hostname": "1.2.3.4"}]}}});
    check(
        &Service.validate_status_update(&status, &json!({})),
        &[
            "status.loadBalancer.ingress[1].ip: Invalid value: \"x\": must be a valid IP address, \
             (e.g. 10.9.8.7 or 2001:db8::ffff)",
            "status.loadBalancer.ingress[2].hostname: Invalid value: \"1.2.3.4\": must be a DNS \
             name, not an IP address",
        ],
    );
}

#[test]
fn n2_3_a_health_check_port_stays() {
    let local = |port: i64| {
        web(
            &json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local",
            "healthCheckNodePort": port}),
        )
    };
    check_update(&Service, &local(30_100), &local(30_100), &[]);
    check_update(
        &Service,
        &local(30_101),
        &local(30_100),
        &["spec.healthCheckNodePort: Forbidden: field is immutable"],
    );
    // One that is left out is kept.
    let new = updated(&Service, &local(0), &local(30_100));
    assert_eq!(new["spec"]["healthCheckNodePort"], 30_100);
}

#[test]
fn n2_3_what_a_proxy_reads_has_defaults() {
    let spec = |extra: Value| created(&Service, &web(&extra))["spec"].clone();
    let plain = spec(json!({}));
    assert_eq!(plain["sessionAffinity"], "None");
    assert_eq!(plain["internalTrafficPolicy"], "Cluster");
    assert!(!has(&plain, "externalTrafficPolicy"));
    let sticky = spec(json!({"sessionAffinity": "ClientIP"}));
    let seconds = &sticky["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    assert_eq!(*seconds, 10_800);
    for kind in ["NodePort", "LoadBalancer"] {
        let external = spec(json!({"type": kind}));
        assert_eq!(external["externalTrafficPolicy"], "Cluster", "{kind}");
        assert_eq!(external["internalTrafficPolicy"], "Cluster", "{kind}");
    }
    let mut sctp = web(&json!({}));
    sctp["spec"]["ports"][0]["protocol"] = json!("SCTP");
    check_create(&Service, &sctp, &[]);
    for distribution in ["PreferClose", "PreferSameNode", "PreferSameZone"] {
        let preferring = web(&json!({"trafficDistribution": distribution}));
        check_create(&Service, &preferring, &[]);
    }
}
