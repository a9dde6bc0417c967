//! What a pod is called from within.

use crate::inputs::tree::{flag, text};
use crate::pods::Pod;

/// The longest label of a name.
const LABEL_MAX: usize = 63;
/// The longest name that the kernel takes.
const KERNEL_MAX: usize = 64;

/// A pod's name and the domain it is in.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::inputs) struct Hostname {
    pub(in crate::inputs) name: String,
    /// Empty for none.
    pub(in crate::inputs) domain: String,
}

/// Of a pod.
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
        "" => short(&pod.id.name),
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

/// A name may not be longer than a label, nor end in a dash or dot.
fn short(name: &str) -> &str {
    match name.get(..LABEL_MAX) {
        Some(cut) if name.len() > LABEL_MAX => cut.trim_end_matches(['-', '.']),
        _ => name,
    }
}

/// What the kernel is told; empty for the machine's own.
pub(in crate::inputs) fn for_kernel(pod: &Pod, cluster_domain: &str) -> Result<String, String> {
    let named = !text(pod.raw_spec(), "hostnameOverride").is_empty();
    if pod.host_network() && !named {
        return Ok(String::new());
    }
    let Hostname { name, domain } = of(pod, cluster_domain);
    if !flag(pod.raw_spec(), "setHostnameAsFQDN") || domain.is_empty() {
        return Ok(name);
    }
    let full = format!("{name}.{domain}");
    if full.len() > KERNEL_MAX {
        return Err(format!(
            "failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long \
             ({KERNEL_MAX} characters is the max, {} characters requested)",
            full.len()
        ));
    }
    Ok(full)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::inputs::testing::pod;

    fn check(spec: Value, name: &str, domain: &str, kernel: &str) {
        let pod = pod(spec);
        let found = of(&pod, "cluster.local");
        assert_eq!((&*found.name, &*found.domain), (name, domain));
        let found = for_kernel(&pod, "cluster.local");
        assert_eq!(found.as_deref(), Ok(kernel));
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
    fn long_names_are_cut() {
        let (a, b) = ("a".repeat(61), "b".repeat(9));
        assert_eq!(short(&"a".repeat(80)), "a".repeat(63));
        assert_eq!(short(&format!("{a}-.{b}")), a);
        let pod = pod(json!({"subdomain": "s".repeat(60), "setHostnameAsFQDN": true}));
        let error = for_kernel(&pod, "cluster.local").unwrap_err();
        assert!(
            error.contains("is too long (64 characters is the max"),
            "{error}"
        );
    }
}
