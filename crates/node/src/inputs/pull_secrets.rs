//! Registry credentials from `imagePullSecrets`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Shared;
use super::objects::{Contents, Key, Kind};
use crate::json::{list, text};
use crate::pods::Pod;
use crate::runtime::RegistryLogin;

/// Docker Hub, which has several names.
const DEFAULT_REGISTRY: &str = "index.docker.io";

impl Shared {
    /// The logins for an image, the best match first.
    pub(super) async fn registry_logins(&self, pod: &Pod, image: &str) -> Vec<RegistryLogin> {
        self.objects.register(pod);
        let mut all = Vec::new();
        let mut missing = Vec::new();
        for secret in list(pod.raw_spec(), "imagePullSecrets") {
            let name = text(secret, "name");
            let key = Key::new(pod, Kind::Secret, name);
            match self.objects.get(&key).await {
                Ok(Some(contents)) => all.extend(read(&contents)),
                _ => missing.push(name),
            }
        }
        if !missing.is_empty() {
            let names = missing.join(", ");
            self.warn(
                pod,
                "FailedToRetrieveImagePullSecret",
                format!(
                    "Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not \
                     succeed."
                ),
            );
        }
        matching(all, image)
    }
}

/// The logins of a Secret, in either format.
fn read(contents: &Contents) -> Vec<RegistryLogin> {
    let parse = |key: &str| -> Option<Value> {
        let content = contents.file(key)?;
        serde_json::from_slice(content).ok()
    };
    let current = parse(".dockerconfigjson").map(|mut config| config["auths"].take());
    let entries = current.or_else(|| parse(".dockercfg")).unwrap_or_default();
    let entries = entries.as_object().into_iter().flatten();
    entries
        .filter_map(|(registry, entry)| login(registry, entry))
        .collect()
}

fn login(registry: &str, entry: &Value) -> Option<RegistryLogin> {
    let (mut username, mut password) = (text(entry, "username"), text(entry, "password"));
    let decoded = STANDARD.decode(text(entry, "auth")).ok();
    let decoded = decoded.and_then(|auth| String::from_utf8(auth).ok());
    if let Some(auth) = decoded.as_deref().and_then(|auth| auth.split_once(':')) {
        (username, password) = auth;
    }
    let identity_token = text(entry, "identitytoken");
    if username.is_empty() && identity_token.is_empty() {
        return None;
    }
    Some(RegistryLogin {
        registry: registry.to_owned(),
        username: username.to_owned(),
        password: password.trim_end_matches('\0').to_owned(),
        identity_token: identity_token.to_owned(),
    })
}

/// The logins that match an image, longest prefix first.
fn matching(all: Vec<RegistryLogin>, image: &str) -> Vec<RegistryLogin> {
    let image = full_name(image);
    let mut found: Vec<RegistryLogin> = all
        .into_iter()
        .filter(|login| matches(&normalize(&login.registry), &image))
        .collect();
    found.sort_by_key(|login| std::cmp::Reverse(normalize(&login.registry)));
    found
}

/// A registry of a Secret, without scheme and API version.
fn normalize(registry: &str) -> String {
    let bare = registry
        .trim_start_matches("https://")
        .trim_start_matches("http://");
    let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
    let host = match host {
        "docker.io" => DEFAULT_REGISTRY,
        host => host,
    };
    // Names of images do not contain the registry API's version.
    let path = path.trim_start_matches("v1/").trim_start_matches("v2/");
    match path.trim_matches('/') {
        "" | "v1" | "v2" => host.to_owned(),
        path => format!("{host}/{path}"),
    }
}

/// An image's name with its registry, without tag and digest.
fn full_name(image: &str) -> String {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let tag = name.rfind(':').filter(|at| !name[*at..].contains('/'));
    let name = tag.map_or(name, |at| &name[..at]);
    match name.split_once('/') {
        None => format!("{DEFAULT_REGISTRY}/library/{name}"),
        Some(("docker.io" | DEFAULT_REGISTRY, rest)) if !rest.contains('/') => {
            format!("{DEFAULT_REGISTRY}/library/{rest}")
        }
        Some(("docker.io", rest)) => format!("{DEFAULT_REGISTRY}/{rest}"),
        Some((host, _)) if !host.contains(['.', ':']) && host != "localhost" => {
            format!("{DEFAULT_REGISTRY}/{name}")
        }
        Some(_) => name.to_owned(),
    }
}

/// Whether a registry, or a prefix of names in it, matches an image. `*` matches within a label of the host name.
fn matches(registry: &str, image: &str) -> bool {
    let split = |text: &str| -> (String, String) {
        let (host, path) = text.split_once('/').unwrap_or((text, ""));
        (host.to_owned(), path.to_owned())
    };
    let ((host, path), (image_host, image_path)) = (split(registry), split(image));
    let port = |host: &str| host.split_once(':').map(|(_, port)| port.to_owned());
    let parts = |host: &str| -> Vec<String> {
        let name = host.split(':').next().unwrap_or_default();
        name.split('.').map(str::to_owned).collect()
    };
    let (globs, names) = (parts(&host), parts(&image_host));
    port(&host) == port(&image_host)
        && globs.len() == names.len()
        && globs
            .iter()
            .zip(&names)
            .all(|(glob, name)| glob_matches(glob, name))
        && image_path.starts_with(&path)
}

/// Matches a label of a host name with `*` and `?`.
fn glob_matches(glob: &str, name: &str) -> bool {
    match (glob.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), first) => {
            let rest = &glob[1..];
            glob_matches(rest, name)
                || first.is_some_and(|first| glob_matches(glob, &name[first.len_utf8()..]))
        }
        (Some(one), Some(first)) if one == '?' || one == first => {
            glob_matches(&glob[one.len_utf8()..], &name[first.len_utf8()..])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn registries_match_like_docker() {
        let check = |registry: &str, image: &str, expected: bool| {
            let found = matches(&normalize(registry), &full_name(image));
            assert_eq!(found, expected, "{registry} {image}");
        };
        for docker in [
            "https://index.docker.io/v1/",
            "docker.io",
            "index.docker.io",
        ] {
            check(docker, "nginx", true);
            check(docker, "nginx:1.27@sha256:abc", true);
            check(docker, "library/nginx", true);
            check(docker, "docker.io/me/app:1", true);
            check(docker, "quay.io/me/app", false);
        }
        check("quay.io", "quay.io/me/app:1", true);
        check("https://quay.io/v2/", "quay.io/me/app:1", true);
        check("quay.io/me", "quay.io/me/app", true);
        check("quay.io/you", "quay.io/me/app", false);
        check("*.example.com", "eu.example.com/app", true);
        check("*.example.com", "a.eu.example.com/app", false);
        check("*.example.com", "example.com/app", false);
        check("reg-*.example.com", "reg-7.example.com/app", true);
        check("localhost:5000", "localhost:5000/app:1", true);
        check("localhost:5000", "localhost:5001/app", false);
        check("localhost", "localhost:5000/app", false);
    }

    #[test]
    fn both_formats_of_secrets_are_read() {
        let contents = |key: &str, value: Value| Contents {
            data: [(key.to_owned(), value.to_string().into_bytes())].into(),
            ..Contents::default()
        };
        let auth = STANDARD.encode("me:se:cret");
        let entries = json!({"quay.io": {"auth": auth}, "quay.io/team": {"username": "u", "password": "p"},
            "empty.io": {}, "token.io": {"identitytoken": "t"}});
        let new = read(&contents(".dockerconfigjson", json!({"auths": entries})));
        assert_eq!(new, read(&contents(".dockercfg", entries)));
        assert_eq!(new.len(), 3);
        let found = matching(new, "quay.io/team/app:1");
        let shown = |login: &RegistryLogin| format!("{}:{}", login.username, login.password);
        let found: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(found, ["u:p", "me:se:cret"]);
        assert!(read(&contents(".dockercfg", json!("odd"))).is_empty());
    }
}
