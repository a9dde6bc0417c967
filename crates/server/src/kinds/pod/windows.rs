//! Validates `windowsOptions`. Kennel runs no Windows pods, but manifests get the errors that upstream gives.

use serde_json::Value;

use super::containers::each_container;
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::form;
use crate::names;
use crate::tree::{flag, opt_flag, opt_text};

const CREDENTIAL_KIB_MAX: usize = 64;
const DOMAIN_LENGTH: usize = 256;
const USER_LENGTH_MAX: usize = 104;
const NETBIOS_LENGTH_MAX: usize = 15;

/// Either all containers of a pod are host processes or none is.
pub(super) fn host_process(errors: &mut Errors, spec: &Value, at: &Path) {
    let of = |owner: &Value| {
        let options = owner.get("securityContext")?.get("windowsOptions")?;
        opt_flag(options, "hostProcess")
    };
    let pod = of(spec);
    let (mut all, mut host) = (0, 0);
    each_container(spec, at, |container, at| {
        all += 1;
        let own = of(container);
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let at = at.child("securityContext").child("windowsOptions");
            let why =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.invalid(&at.child("hostProcess"), own, &why);
        }
        if own.or(pod) == Some(true) {
            host += 1;
        }
    });
    if host == 0 {
        return;
    }
    if host != all {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid(at, "", why);
    }
    if !flag(spec, "hostNetwork") {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&at.child("hostNetwork"), false, why);
    }
}

/// Checks `windowsOptions` of a security context.
pub(super) fn windows_options(errors: &mut Errors, context: &Value, at: &Path) {
    let Some(options) = context.get("windowsOptions") else {
        return;
    };
    let at = at.child("windowsOptions");
    if let Some(name) = opt_text(options, "gmsaCredentialSpecName") {
        let mistakes = names::dns1123_subdomain(name);
        form(errors, &at, "gmsaCredentialSpecName", name, mistakes);
    }
    if let Some(spec) = opt_text(options, "gmsaCredentialSpec") {
        let why = if spec.is_empty() {
            vec!["gmsaCredentialSpec cannot be an empty string".to_owned()]
        } else if spec.len() > CREDENTIAL_KIB_MAX * 1024 {
            vec![format!(
                "gmsaCredentialSpec size must be under {CREDENTIAL_KIB_MAX} KiB"
            )]
        } else {
            Vec::new()
        };
        form(errors, &at, "gmsaCredentialSpec", spec, why);
    }
    if let Some(name) = opt_text(options, "runAsUserName") {
        form(errors, &at, "runAsUserName", name, user_name_mistakes(name));
    }
}

fn user_name_mistakes(name: &str) -> Vec<String> {
    let only = |why: &str| vec![why.to_owned()];
    if name.is_empty() {
        return only("runAsUserName cannot be an empty string");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return only("runAsUserName cannot contain control characters");
    }
    if name.matches('\\').count() > 1 {
        return only("runAsUserName cannot contain more than one backslash");
    }
    let mut mistakes = Vec::new();
    let user = match name.split_once('\\') {
        Some((domain, user)) => {
            domain_mistakes(domain, &mut mistakes);
            user
        }
        None => name,
    };
    if user.is_empty() {
        mistakes.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER_LENGTH_MAX {
        mistakes.push(format!(
            "runAsUserName's User length must not be longer than {USER_LENGTH_MAX} characters"
        ));
    }
    if !user.is_empty() && user.chars().all(|c| c == '.' || c == ' ') {
        mistakes.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains([
        '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
    ]) {
        let why =
            r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#;
        mistakes.push(why.to_owned());
    }
    mistakes
}

fn domain_mistakes(domain: &str, mistakes: &mut Vec<String>) {
    if domain.len() >= DOMAIN_LENGTH {
        mistakes.push(format!(
            "runAsUserName's Domain length must be under {DOMAIN_LENGTH} characters"
        ));
    }
    let reserved = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    let is_netbios = (1..=NETBIOS_LENGTH_MAX).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(reserved);
    let is_label = |label: &str| {
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = label.as_bytes();
        bytes.len() <= names::LABEL_LENGTH_MAX
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    if !is_netbios && !domain.split('.').all(is_label) {
        let why = "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
        mistakes.push(why.to_owned());
    }
}
