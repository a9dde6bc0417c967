//! `/etc/resolv.conf` of a pod, from the machine's, the cluster's and the pod's own DNS settings.

use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;

use crate::json::{list, text, texts};
use crate::pods::Pod;
use crate::runtime::Dns;

/// Upstream's limits, which resolvers have, too.
const MAX_SERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The upstream name servers of systemd-resolved, whose listener `/etc/resolv.conf` names.
const RESOLVED_RESOLV_CONF: &str = "/run/systemd/resolve/resolv.conf";
const RESOLVED_LISTENER: &str = "127.0.0.53";

/// A pod's DNS settings, and warnings as event reasons and messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::inputs) struct PodDns {
    pub(in crate::inputs) dns: Dns,
    pub(in crate::inputs) warnings: Vec<(&'static str, String)>,
}

/// The machine's settings, usable from its network or from a pod's.
pub(in crate::inputs) fn of_machine(host_network: bool) -> Dns {
    let read = |path| parse(&std::fs::read_to_string(path).unwrap_or_default());
    let dns = read(RESOLV_CONF);
    // Pods cannot reach a listener on the machine's loopback interface.
    if !host_network
        && dns.servers == [RESOLVED_LISTENER]
        && Path::new(RESOLVED_RESOLV_CONF).exists()
    {
        return read(RESOLVED_RESOLV_CONF);
    }
    dns
}

pub(in crate::inputs) fn parse(file: &str) -> Dns {
    let mut dns = Dns::default();
    for line in file.lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        match words.next().as_deref() {
            Some("nameserver") => dns.servers.extend(words.next()),
            Some("search") => dns.searches = words.filter(|word| word != ".").collect(),
            Some("options") => dns.options.extend(words),
            _ => {}
        }
    }
    dns
}

pub(in crate::inputs) fn write(dns: &Dns) -> String {
    let servers = dns.servers.iter();
    let mut lines: Vec<String> = servers.map(|ip| format!("nameserver {ip}\n")).collect();
    for (word, values) in [("search", &dns.searches), ("options", &dns.options)] {
        if !values.is_empty() {
            lines.push(format!("{word} {}\n", values.join(" ")));
        }
    }
    lines.concat()
}

/// `servers` are the cluster's name servers.
pub(in crate::inputs) fn of_pod(
    pod: &Pod,
    servers: &[IpAddr],
    domain: &str,
    machine: Dns,
) -> PodDns {
    let mut warnings = Vec::new();
    let policy = match text(pod.raw_spec(), "dnsPolicy") {
        "" => "ClusterFirst",
        policy => policy,
    };
    let wants_cluster = match policy {
        "ClusterFirst" => !pod.host_network(),
        policy => policy == "ClusterFirstWithHostNet",
    };
    let mut dns = match policy {
        "None" => Dns::default(),
        _ if wants_cluster && servers.is_empty() => {
            warnings.push(("MissingClusterDNS", missing_cluster_dns(pod, policy)));
            machine
        }
        _ if wants_cluster => of_cluster(pod, servers, domain, machine),
        _ => machine,
    };
    add_pod_config(&mut dns, &pod.raw_spec()["dnsConfig"]);
    apply_limits(&mut dns, &mut warnings);
    PodDns { dns, warnings }
}

fn missing_cluster_dns(pod: &Pod, policy: &str) -> String {
    let id = &pod.id;
    format!(
        "pod: \"{}_{}({})\". kubelet does not have ClusterDNS IP configured and cannot create Pod using \
         \"{policy}\" policy. Falling back to \"Default\" policy.",
        id.name, id.namespace, id.uid
    )
}

fn of_cluster(pod: &Pod, servers: &[IpAddr], domain: &str, machine: Dns) -> Dns {
    let namespace = &pod.id.namespace;
    let mut searches = Vec::new();
    if !domain.is_empty() {
        searches.push(format!("{namespace}.svc.{domain}"));
        searches.push(format!("svc.{domain}"));
        searches.push(domain.to_owned());
    }
    merge(&mut searches, machine.searches);
    Dns {
        servers: servers.iter().map(ToString::to_string).collect(),
        searches,
        options: vec!["ndots:5".to_owned()],
    }
}

fn add_pod_config(dns: &mut Dns, own: &Value) {
    merge(&mut dns.servers, texts(own, "nameservers"));
    merge(&mut dns.searches, texts(own, "searches"));
    for option in list(own, "options") {
        let name = text(option, "name");
        let full = match text(option, "value") {
            "" => name.to_owned(),
            value => format!("{name}:{value}"),
        };
        let others = |old: &String| old.split(':').next() != Some(name);
        dns.options.retain(others);
        dns.options.push(full);
    }
}

fn merge(all: &mut Vec<String>, more: Vec<String>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// Drops entries beyond the limits.
fn apply_limits(dns: &mut Dns, warnings: &mut Vec<(&'static str, String)>) {
    let mut omitted = |message: &str, line: &[String]| {
        warnings.push(("DNSConfigForming", format!("{message}: {}", line.join(" "))));
    };
    if dns.servers.len() > MAX_SERVERS {
        dns.servers.truncate(MAX_SERVERS);
        omitted(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is",
            &dns.servers,
        );
    }
    let before = dns.searches.len();
    dns.searches.truncate(MAX_SEARCHES);
    while dns.searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        dns.searches.pop();
    }
    if dns.searches.len() < before {
        omitted(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is",
            &dns.searches,
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inputs::tests::fixture::pod;

    const MACHINE: &str = "# by hand\nnameserver 192.0.2.1\nsearch example.com .\noptions edns0\n";

    fn check(spec: Value, cluster: &[&str], expected: &str) -> Vec<&'static str> {
        let servers: Vec<IpAddr> = cluster.iter().map(|ip| ip.parse().unwrap()).collect();
        let shown = spec.to_string();
        let found = of_pod(&pod(spec), &servers, "cluster.local", parse(MACHINE));
        assert_eq!(write(&found.dns), expected, "{shown}");
        found
            .warnings
            .into_iter()
            .map(|(reason, _)| reason)
            .collect()
    }

    #[test]
    fn policies() {
        let cluster = "nameserver 10.96.0.10\n\
            search shop.svc.cluster.local svc.cluster.local cluster.local example.com\n\
            options ndots:5\n";
        let machine = "nameserver 192.0.2.1\nsearch example.com\noptions edns0\n";
        let dns: &[&str] = &["10.96.0.10"];
        let on_host = |policy: &str| json!({"hostNetwork": true, "dnsPolicy": policy});
        assert!(check(json!({"dnsPolicy": "ClusterFirst"}), dns, cluster).is_empty());
        assert!(check(on_host("ClusterFirst"), dns, machine).is_empty());
        assert!(check(on_host("ClusterFirstWithHostNet"), dns, cluster).is_empty());
        assert!(check(json!({"dnsPolicy": "Default"}), dns, machine).is_empty());
        assert_eq!(check(json!({}), &[], machine), ["MissingClusterDNS"]);
    }

    #[test]
    fn the_pods_dns_config_is_added() {
        let own = json!({"nameservers": ["192.0.2.7", "192.0.2.1"], "searches": ["a.b", "example.com"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}]});
        check(
            json!({"dnsPolicy": "None", "dnsConfig": own}),
            &[],
            "nameserver 192.0.2.7\nnameserver 192.0.2.1\nsearch a.b example.com\noptions ndots:2 rotate\n",
        );
        check(
            json!({"dnsPolicy": "ClusterFirst", "dnsConfig": own}),
            &["10.96.0.10"],
            "nameserver 10.96.0.10\nnameserver 192.0.2.7\nnameserver 192.0.2.1\n\
             search shop.svc.cluster.local svc.cluster.local cluster.local example.com a.b\n\
             options ndots:2 rotate\n",
        );
    }

    #[test]
    fn entries_beyond_the_limits_are_dropped_with_a_warning() {
        let own = json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3"]});
        let warnings = check(
            json!({"dnsPolicy": "Default", "dnsConfig": own}),
            &[],
            "nameserver 192.0.2.1\nnameserver 1.1.1.1\nnameserver 2.2.2.2\nsearch example.com\noptions edns0\n",
        );
        assert_eq!(warnings, ["DNSConfigForming"]);
    }
}
