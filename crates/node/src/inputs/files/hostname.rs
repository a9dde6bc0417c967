//! The host name of a pod.

use crate::json::{flag, text};
use crate::pods::Pod;

/// Of a DNS label.
const MAX_LABEL_LENGTH: usize = 63;
/// Of a host name in the kernel.
const MAX_KERNEL_LENGTH: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::inputs) struct Hostname {
    pub(in crate::inputs) name: String,
    /// Empty for none.
    pub(in crate::inputs) domain: String,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long ({MAX_KERNEL_LENGTH} \
     characters is the max, {} characters requested)",
    fqdn.len()
)]
pub(in crate::inputs) struct FqdnTooLong {
    fqdn: String,
}

pub(in crate::inputs) fn of(pod: &Pod, cluster_domain: &str) -> Hostname {
    let spec = pod.raw_spec();
    let overriding = text(spec, "hostnameOverride");
    if !overriding.is_empty() {
        return Hostname {
            name: overriding.to_owned(),
            domain: String::new(),
        };
    }
    let name = match text(spec, "hostname") {
        "" => truncate(&pod.id.name),
        name => name,
    };
    let domain = match text(spec, "subdomain") {
        "" => String::new(),
        subdomain => format!("{subdomain}.{}.svc.{cluster_domain}", pod.id.namespace),
    };
    Hostname {
        name: name.to_owned(),
        domain,
    }
}

/// Truncates a name to a valid label.
fn truncate(name: &str) -> &str {
    match name.get(..MAX_LABEL_LENGTH) {
        Some(cut) if name.len() > MAX_LABEL_LENGTH => cut.trim_end_matches(['-', '.']),
        _ => name,
    }
}

/// The host name to set in the kernel; empty for the machine's own.
pub(in crate::inputs) fn for_kernel(
    pod: &Pod,
    cluster_domain: &str,
) -> Result<String, FqdnTooLong> {
    let named = !text(pod.raw_spec(), "hostnameOverride").is_empty();
    if pod.host_network() && !named {
        return Ok(String::new());
    }
    let Hostname { name, domain } = of(pod, cluster_domain);
    if !flag(pod.raw_spec(), "setHostnameAsFQDN") || domain.is_empty() {
        return Ok(name);
    }
    let fqdn = format!("{name}.{domain}");
    if fqdn.len() > MAX_KERNEL_LENGTH {
        return Err(FqdnTooLong { fqdn });
    }
    Ok(fqdn)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::inputs::tests::fixture::pod;

    fn check(spec: Value, name: &str, domain: &str, kernel: &str) {
        let pod = pod(spec);
        let found = of(&pod, "cluster.local");
        assert_eq!((&*found.name, &*found.domain), (name, domain));
        let found = for_kernel(&pod, "cluster.local");
        assert_eq!(found.unwrap(), kernel);
    }

    #[test]
    fn names_and_domains() {
        let domain = "s.shop.svc.cluster.local";
        check(json!({}), "web", "", "web");
        check(json!({"hostname": "h"}), "h", "", "h");
        check(json!({"hostname": "h", "subdomain": "s"}), "h", domain, "h");
        check(
            json!({"subdomain": "s", "setHostnameAsFQDN": true}),
            "web",
            domain,
            "web.s.shop.svc.cluster.local",
        );
        check(json!({"setHostnameAsFQDN": true}), "web", "", "web");
        check(json!({"hostNetwork": true}), "web", "", "");
        let overriding = json!({"hostnameOverride": "a.b.c", "subdomain": "s"});
        check(overriding, "a.b.c", "", "a.b.c");
    }

    #[test]
    fn long_names_are_truncated() {
        let (a, b) = ("a".repeat(61), "b".repeat(9));
        assert_eq!(truncate(&"a".repeat(80)), "a".repeat(63));
        assert_eq!(truncate(&format!("{a}-.{b}")), a);
        let pod = pod(json!({"subdomain": "s".repeat(60), "setHostnameAsFQDN": true}));
        let error = for_kernel(&pod, "cluster.local").unwrap_err().to_string();
        assert!(
            error.contains("is too long (64 characters is the max"),
            "{error}"
        );
    }
}
