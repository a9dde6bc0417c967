//! How a pod finds names: `/etc/resolv.conf`, from the machine's, the cluster's and the pod's own.

use std::path::Path;

use serde_json::Value;

use crate::agent::Settings;
use crate::inputs::tree::{list, text, texts};
use crate::pods::Pod;
use crate::runtime::Dns;

/// More name servers than these are not asked.
const SERVERS_MAX: usize = 3;
/// More domains than these are not tried …
const SEARCHES_MAX: usize = 32;
/// … nor more than these characters of them.
const SEARCH_CHARACTERS_MAX: usize = 2048;

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Where systemd-resolved keeps the real one, when the usual file names its own listener alone.
const BEHIND_RESOLVED: &str = "/run/systemd/resolve/resolv.conf";
const RESOLVED: &str = "127.0.0.53";

/// What a pod gets, and what must be said about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::inputs) struct Answer {
    pub(in crate::inputs) dns: Dns,
    pub(in crate::inputs) notes: Vec<(&'static str, String)>,
}

/// The machine's own settings, as those see it that share its network or not.
pub(in crate::inputs) fn of_machine(host_network: bool) -> Dns {
    let read = |path| parse(&std::fs::read_to_string(path).unwrap_or_default());
    let dns = read(RESOLV_CONF);
    // A listener on the machine's loopback cannot be reached from another network.
    if !host_network && dns.servers == [RESOLVED] && Path::new(BEHIND_RESOLVED).exists() {
        return read(BEHIND_RESOLVED);
    }
    dns
}

/// Reads a `resolv.conf`.
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

/// Writes a `resolv.conf`.
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

/// What a pod gets, where the machine has `machine`.
pub(in crate::inputs) fn of_pod(pod: &Pod, settings: &Settings, machine: Dns) -> Answer {
    let mut notes = Vec::new();
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
        _ if wants_cluster && settings.cluster_dns.is_empty() => {
            notes.push(("MissingClusterDNS", missing(pod, policy)));
            machine
        }
        _ if wants_cluster => of_cluster(pod, settings, machine),
        _ => machine,
    };
    add(&mut dns, &pod.raw_spec()["dnsConfig"]);
    bound(&mut dns, &mut notes);
    Answer { dns, notes }
}

fn missing(pod: &Pod, policy: &str) -> String {
    let id = &pod.id;
    format!(
        "pod: \"{}_{}({})\". kubelet does not have ClusterDNS IP configured and cannot create Pod using \
         \"{policy}\" policy. Falling back to \"Default\" policy.",
        id.name, id.namespace, id.uid
    )
}

fn of_cluster(pod: &Pod, settings: &Settings, machine: Dns) -> Dns {
    let (domain, namespace) = (&settings.cluster_domain, &pod.id.namespace);
    let mut searches = Vec::new();
    if !domain.is_empty() {
        searches.push(format!("{namespace}.svc.{domain}"));
        searches.push(format!("svc.{domain}"));
        searches.push(domain.clone());
    }
    merge(&mut searches, machine.searches);
    let servers = settings.cluster_dns.iter();
    Dns {
        servers: servers.map(ToString::to_string).collect(),
        searches,
        options: vec!["ndots:5".to_owned()],
    }
}

/// Adds what the pod itself says.
fn add(dns: &mut Dns, own: &Value) {
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

/// Leaves out what no resolver would look at.
fn bound(dns: &mut Dns, notes: &mut Vec<(&'static str, String)>) {
    let mut omitted = |message: &str, line: &[String]| {
        notes.push(("DNSConfigForming", format!("{message}: {}", line.join(" "))));
    };
    if dns.servers.len() > SERVERS_MAX {
        dns.servers.truncate(SERVERS_MAX);
        omitted(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is",
            &dns.servers,
        );
    }
    let before = dns.searches.len();
    dns.searches.truncate(SEARCHES_MAX);
    while dns.searches.join(" ").len() > SEARCH_CHARACTERS_MAX {
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
    use crate::inputs::testing::{pod, settings};

    const MACHINE: &str = "# by hand\nnameserver 192.0.2.1\nsearch example.com .\noptions edns0\n";

    fn check(spec: Value, cluster: &[&str], expected: &str) -> Vec<&'static str> {
        let mut settings = settings(Path::new("/nowhere"));
        settings.cluster_dns = cluster.iter().map(|ip| ip.parse().unwrap()).collect();
        let shown = spec.to_string();
        let answer = of_pod(&pod(spec), &settings, parse(MACHINE));
        assert_eq!(write(&answer.dns), expected, "{shown}");
        answer.notes.into_iter().map(|(reason, _)| reason).collect()
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
    fn what_the_pod_says_itself_is_added() {
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
    fn what_is_too_much_is_left_out_and_said() {
        let own = json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3"]});
        let notes = check(
            json!({"dnsPolicy": "Default", "dnsConfig": own}),
            &[],
            "nameserver 192.0.2.1\nnameserver 1.1.1.1\nnameserver 2.2.2.2\nsearch example.com\noptions edns0\n",
        );
        assert_eq!(notes, ["DNSConfigForming"]);
    }
}
