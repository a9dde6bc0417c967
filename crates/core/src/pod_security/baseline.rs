//! The checks of the level `baseline`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Violation;
use super::pod::{Pod, containers, list, plural, quoted, quoted_set, setters, text, texts};

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_ANNOTATION: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// The capabilities that containers may add.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The sysctls that pods may set, with the first minor version that allows them.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

/// The `SELinux` types that pods may set, likewise.
const SE_LINUX_TYPES: [(&str, u32); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];

fn allows(table: &[(&str, u32)], value: &str, minor: u32) -> bool {
    let mut allowed = table.iter().filter(|(_, since)| *since <= minor);
    allowed.any(|(name, _)| *name == value)
}

/// The type of a seccomp or `AppArmor` profile that is neither the runtime's default nor one of the node.
pub(super) fn forbidden_profile<'a>(security: &'a Value, field: &str) -> Option<&'a str> {
    let profile = security.get(field).filter(|profile| profile.is_object())?;
    let kind = text(profile, "type");
    (!matches!(kind, "RuntimeDefault" | "Localhost")).then_some(kind)
}

pub(super) fn app_armor(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    const FIELD: &str = "appArmorProfile";
    let forbidden = |security| forbidden_profile(security, FIELD);
    let in_pod = forbidden(pod.security());
    let bad = pod.names(|container| forbidden(container.security()).is_some());
    let in_containers = pod.containers().filter_map(|one| forbidden(one.security()));
    let values: BTreeSet<&str> = in_pod.into_iter().chain(in_containers).collect();
    let annotations = pod.annotations().filter(|(key, value)| {
        let allowed = value.is_empty() || *value == "runtime/default";
        key.starts_with(APP_ARMOR_ANNOTATION) && !allowed && !value.starts_with("localhost/")
    });
    let annotations: BTreeSet<String> = annotations
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let mut who: Vec<String> = setters(in_pod.is_some(), &bad).into_iter().collect();
    if !annotations.is_empty() {
        who.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    if who.is_empty() {
        return None;
    }
    let count = values.len() + annotations.len();
    let values = values.into_iter().chain(annotations.iter().map(|a| &**a));
    Some(Violation {
        reason: plural(
            count,
            "forbidden AppArmor profile",
            "forbidden AppArmor profiles",
        ),
        detail: format!(
            "{} must not set AppArmor profile type to {}",
            who.join(" and "),
            quoted(values)
        ),
    })
}

/// The names of the containers that add capabilities which `allows` refuses, and those capabilities.
pub(super) fn added<'a>(
    pod: &Pod<'a>,
    allows: impl Fn(&str) -> bool,
) -> (Vec<&'a str>, BTreeSet<String>) {
    let mut names = Vec::new();
    let mut forbidden = BTreeSet::new();
    for container in pod.containers() {
        let added = texts(&container.security()["capabilities"], "add");
        let bad: Vec<&str> = added.filter(|name| !allows(name)).collect();
        if !bad.is_empty() {
            names.push(container.name());
        }
        forbidden.extend(bad.into_iter().map(str::to_owned));
    }
    (names, forbidden)
}

pub(super) fn capabilities(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let (bad, forbidden) = added(pod, |name| CAPABILITIES.contains(&name));
    (!bad.is_empty()).then(|| Violation {
        reason: "non-default capabilities",
        detail: format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&bad),
            quoted_set(&forbidden)
        ),
    })
}

pub(super) fn host_namespaces(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let set: Vec<String> = fields
        .filter(|field| pod.spec[*field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    (!set.is_empty()).then(|| Violation {
        reason: "host namespaces",
        detail: set.join(", "),
    })
}

pub(super) fn host_path_volumes(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let volumes = pod.volumes().iter();
    let bad: Vec<&str> = volumes
        .filter(|volume| volume["hostPath"].is_object())
        .map(|volume| text(volume, "name"))
        .collect();
    let what = plural(bad.len(), "volume", "volumes");
    (!bad.is_empty()).then(|| Violation {
        reason: "hostPath volumes",
        detail: format!("{what} {}", quoted(bad)),
    })
}

pub(super) fn host_ports(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<String> {
        let ports = list(container, "ports").iter();
        let ports = ports.filter_map(|port| port["hostPort"].as_i64());
        ports
            .filter(|port| *port != 0)
            .map(|port| port.to_string())
            .collect()
    };
    let bad = pod.names(|container| !ports(container.0).is_empty());
    // Sorted as text, as upstream's are.
    let all: BTreeSet<String> = pod.containers().flat_map(|one| ports(one.0)).collect();
    (!bad.is_empty()).then(|| Violation {
        reason: "hostPort",
        detail: format!(
            "{} {} {} {}",
            containers(&bad),
            plural(bad.len(), "uses", "use"),
            plural(all.len(), "hostPort", "hostPorts"),
            all.into_iter().collect::<Vec<_>>().join(", ")
        ),
    })
}

/// The hosts of a container's probes and lifecycle handlers: the kubelet must not be sent elsewhere.
fn hosts(container: &Value) -> Vec<String> {
    let lifecycle = &container["lifecycle"];
    let handlers = [
        &container["livenessProbe"],
        &container["readinessProbe"],
        &container["startupProbe"],
        &lifecycle["postStart"],
        &lifecycle["preStop"],
    ];
    let hosts = handlers.into_iter().flat_map(|handler| {
        let actions = ["httpGet", "tcpSocket"].into_iter();
        actions.map(|action| text(&handler[action], "host"))
    });
    hosts
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect()
}

pub(super) fn probe_hosts(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let mut bad = pod.names(|container| !hosts(container.0).is_empty());
    bad.sort_unstable();
    bad.dedup();
    let all: BTreeSet<String> = pod.containers().flat_map(|one| hosts(one.0)).collect();
    (!bad.is_empty()).then(|| Violation {
        reason: "probe or lifecycle host",
        detail: format!(
            "{} {} {} {}",
            containers(&bad),
            plural(bad.len(), "uses", "use"),
            plural(
                all.len(),
                "probe or lifecycle host",
                "probe or lifecycle hosts"
            ),
            quoted_set(&all)
        ),
    })
}

pub(super) fn privileged(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let bad = pod.names(|container| container.security()["privileged"] == true);
    (!bad.is_empty()).then(|| Violation {
        reason: "privileged",
        detail: format!(
            "{} must not set securityContext.privileged=true",
            containers(&bad)
        ),
    })
}

pub(super) fn proc_mount(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    any_proc_mount(pod)
}

pub(super) fn any_proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let forbidden = |security: &Value| -> Option<String> {
        let given = security["procMount"].as_str()?;
        (given != "Default").then(|| given.to_owned())
    };
    let bad = pod.names(|container| forbidden(container.security()).is_some());
    let values: BTreeSet<String> = pod
        .containers()
        .filter_map(|one| forbidden(one.security()))
        .collect();
    (!bad.is_empty()).then(|| Violation {
        reason: "procMount",
        detail: format!(
            "{} must not set securityContext.procMount to {}",
            containers(&bad),
            quoted_set(&values)
        ),
    })
}

pub(super) fn se_linux(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    let forbids_type = |options: &Value| !allows(&SE_LINUX_TYPES, text(options, "type"), minor);
    let sets = |options: &Value, field| !text(options, field).is_empty();
    let is_bad =
        |options: &Value| forbids_type(options) || sets(options, "user") || sets(options, "role");
    let in_pod = &pod.security()["seLinuxOptions"];
    let bad = pod.names(|container| is_bad(&container.security()["seLinuxOptions"]));
    let who = setters(is_bad(in_pod), &bad)?;
    let in_containers = pod
        .containers()
        .map(|one| &one.security()["seLinuxOptions"]);
    let all: Vec<&Value> = std::iter::once(in_pod).chain(in_containers).collect();
    let types = all.iter().filter(|options| forbids_type(options));
    let types: BTreeSet<&str> = types.map(|options| text(options, "type")).collect();
    let mut what = Vec::new();
    if !types.is_empty() {
        let word = plural(types.len(), "type", "types");
        what.push(format!("{word} {}", quoted(types)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| sets(options, field)) {
            what.push(format!("{field} may not be set"));
        }
    }
    Some(Violation {
        reason: "seLinuxOptions",
        detail: format!(
            "{who} set forbidden securityContext.seLinuxOptions: {}",
            what.join("; ")
        ),
    })
}

pub(super) fn seccomp(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor < 19 {
        return seccomp_annotations(pod);
    }
    forbidden_seccomp(pod)
}

fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let concerns = |key: &str| {
        let container = key.strip_prefix(SECCOMP_ANNOTATION);
        let mut containers = pod.containers();
        key == SECCOMP_POD_ANNOTATION
            || container.is_some_and(|name| containers.any(|one| one.name() == name))
    };
    let forbidden: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| concerns(key) && !is_allowed(value))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let what = plural(forbidden.len(), "annotation", "annotations");
    (!forbidden.is_empty()).then(|| Violation {
        reason: "seccompProfile",
        detail: format!(
            "forbidden {what} {}",
            forbidden.into_iter().collect::<Vec<_>>().join(", ")
        ),
    })
}

/// A seccomp profile that is set to what no level but `privileged` allows.
pub(super) fn forbidden_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let forbidden = |security| forbidden_profile(security, "seccompProfile");
    let in_pod = forbidden(pod.security());
    let bad = pod.names(|container| forbidden(container.security()).is_some());
    let who = setters(in_pod.is_some(), &bad)?;
    let in_containers = pod.containers().filter_map(|one| forbidden(one.security()));
    let values: BTreeSet<&str> = in_pod.into_iter().chain(in_containers).collect();
    Some(Violation {
        reason: "seccompProfile",
        detail: format!(
            "{who} must not set securityContext.seccompProfile.type to {}",
            quoted(values)
        ),
    })
}

pub(super) fn sysctls(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    let names = list(pod.security(), "sysctls").iter();
    let names = names.map(|sysctl| text(sysctl, "name"));
    let forbidden: Vec<&str> = names
        .filter(|name| !allows(&SYSCTLS, name, minor))
        .collect();
    (!forbidden.is_empty()).then(|| Violation {
        reason: "forbidden sysctls",
        detail: forbidden.join(", "),
    })
}

pub(super) fn host_process(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let is_bad = |security: &Value| security["windowsOptions"]["hostProcess"] == true;
    let bad = pod.names(|container| is_bad(container.security()));
    let who = setters(is_bad(pod.security()), &bad)?;
    Some(Violation {
        reason: "hostProcess",
        detail: format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    })
}
