//! `/etc/hosts` of a pod.

use std::fmt::{Display, Write as _};
use std::net::IpAddr;

use serde_json::Value;

use super::hostname::Hostname;
use crate::json::{list, text, texts};

/// Upstream's entries of every pod.
const STANDARD_ENTRIES: [(&str, &str); 6] = [
    ("127.0.0.1", "localhost"),
    ("::1", "localhost ip6-localhost ip6-loopback"),
    ("fe00::0", "ip6-localnet"),
    ("fe00::0", "ip6-mcastprefix"),
    ("fe00::1", "ip6-allnodes"),
    ("fe00::2", "ip6-allrouters"),
];

/// For a pod with its own network.
pub(in crate::inputs) fn of_pod(spec: &Value, host: &Hostname, addresses: &[IpAddr]) -> String {
    let mut file = String::from("# Kubernetes-managed hosts file.\n");
    for (address, names) in STANDARD_ENTRIES {
        line(&mut file, &address, names);
    }
    for address in addresses {
        let Hostname { name, domain } = host;
        match domain.as_str() {
            "" => line(&mut file, address, name),
            domain => line(&mut file, address, &format!("{name}.{domain}\t{name}")),
        }
    }
    file + &aliases(spec)
}

/// For a pod on the host network; `machine` is the machine's file.
pub(in crate::inputs) fn of_machine(spec: &Value, machine: &str) -> String {
    let aliases = aliases(spec);
    format!("# Kubernetes-managed hosts file (host network).\n{machine}{aliases}")
}

pub(in crate::inputs) fn has_aliases(spec: &Value) -> bool {
    !list(spec, "hostAliases").is_empty()
}

fn aliases(spec: &Value) -> String {
    if !has_aliases(spec) {
        return String::new();
    }
    let mut lines = String::from("\n# Entries added by HostAliases.\n");
    for alias in list(spec, "hostAliases") {
        let names = texts(alias, "hostnames").join("\t");
        line(&mut lines, &text(alias, "ip"), &names);
    }
    lines
}

fn line(file: &mut String, address: &dyn Display, names: &str) {
    writeln!(file, "{address}\t{names}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pods_file_has_its_own_name_and_aliases() {
        let host = Hostname {
            name: "web".into(),
            domain: "s.shop.svc.cluster.local".into(),
        };
        let spec = json!({"hostAliases": [{"ip": "10.9.9.9", "hostnames": ["db", "db.old"]}]});
        let file = of_pod(&spec, &host, &["10.1.0.7".parse().unwrap()]);
        let expected = "# Kubernetes-managed hosts file.\n\
            127.0.0.1\tlocalhost\n\
            ::1\tlocalhost ip6-localhost ip6-loopback\n\
            fe00::0\tip6-localnet\n\
            fe00::0\tip6-mcastprefix\n\
            fe00::1\tip6-allnodes\n\
            fe00::2\tip6-allrouters\n\
            10.1.0.7\tweb.s.shop.svc.cluster.local\tweb\n\
            \n\
            # Entries added by HostAliases.\n\
            10.9.9.9\tdb\tdb.old\n";
        assert_eq!(file, expected);
    }

    #[test]
    fn a_host_network_pods_file_has_the_machines_entries() {
        let file = of_machine(&json!({}), "127.0.0.1 localhost\n");
        let expected = "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n";
        assert_eq!(file, expected);
    }
}
