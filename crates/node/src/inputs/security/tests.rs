//! Security settings of containers.

use serde_json::json;

use super::*;
use crate::inputs::tests::fixture::pod;

fn of(all: Value, own: Value, image: &Image) -> Result<Security, SecurityError> {
    let mut spec = json!({"containers": [{"name": "c"}]});
    spec["securityContext"] = all;
    spec["containers"][0]["securityContext"] = own;
    let pod = pod(spec);
    let container = pod.raw_container("c").unwrap();
    of_container(&pod, container, image, true, Path::new("/profiles"))
}

fn image(uid: Option<i64>, username: &str) -> Image {
    Image {
        uid,
        username: username.into(),
        ..Image::default()
    }
}

#[test]
fn a_containers_context_overrides_its_pods() {
    let all = json!({"runAsUser": 1, "runAsGroup": 2, "supplementalGroups": [5], "fsGroup": 6,
        "seccompProfile": {"type": "RuntimeDefault"}});
    let found = of(all.clone(), json!({"runAsUser": 9}), &image(None, "")).unwrap();
    assert_eq!((found.user, found.group), (Some(9), Some(2)));
    assert_eq!(found.groups, [5, 6]);
    assert_eq!(found.seccomp, Seccomp::RuntimeDefault);
    let free = json!({"seccompProfile": {"type": "Unconfined"}});
    let found = of(all.clone(), free, &image(None, "")).unwrap();
    assert_eq!((found.user, found.seccomp), (Some(1), Seccomp::Unconfined));
    let found = of(all, json!({"privileged": true}), &image(None, "")).unwrap();
    assert_eq!(
        (found.privileged, found.seccomp),
        (true, Seccomp::Unconfined)
    );
}

#[test]
fn the_images_user_is_the_default() {
    let check = |image: &Image, user: Option<i64>, username: &str| {
        let found = of(json!({}), json!({}), image).unwrap();
        assert_eq!((found.user, &*found.username), (user, username));
    };
    check(&image(None, ""), Some(0), "");
    check(&image(Some(7), ""), Some(7), "");
    check(&image(None, "nobody"), None, "nobody");
}

#[test]
fn run_as_non_root_is_enforced() {
    let check = |own: Value, image: &Image, expected: &str| {
        let all = json!({"runAsNonRoot": true});
        let error = of(all, own, image).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        let suffix = " (pod: \"web_shop(u1)\", container: c)";
        assert_eq!(error.trim_end_matches(suffix), expected);
    };
    let by_root = "container has runAsNonRoot and image will run as root";
    check(json!({}), &image(None, ""), by_root);
    check(json!({}), &image(Some(0), ""), by_root);
    check(json!({}), &image(Some(5), ""), "");
    check(json!({"runAsUser": 5}), &image(Some(0), ""), "");
    check(json!({"runAsNonRoot": false}), &image(Some(0), ""), "");
    check(
        json!({"runAsUser": 0}),
        &image(Some(5), ""),
        "container's runAsUser breaks non-root policy",
    );
    check(
        json!({}),
        &image(None, "nobody"),
        "container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root",
    );
}

#[test]
fn settings_are_passed_to_the_runtime() {
    let own = json!({"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}, "procMount": "Unmasked",
        "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
        "seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"}});
    let found = of(json!({}), own, &image(None, "")).unwrap();
    assert_eq!(found.capabilities.add, ["NET_ADMIN"]);
    assert_eq!(found.capabilities.drop, ["ALL"]);
    assert!(found.read_only_root && found.no_new_privileges && found.unmasked_proc);
    assert_eq!(
        found.seccomp,
        Seccomp::Localhost("/profiles/a/b.json".into())
    );
}

#[test]
fn unsupported_settings_are_rejected() {
    let refused = |all: Value, own: Value| {
        let error = of(all, own, &image(None, "")).unwrap_err();
        error.to_string()
    };
    let outside = json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "../x"}});
    assert!(refused(json!({}), outside).contains("localhostProfile"));
    let armor = json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}});
    assert!(refused(json!({}), armor).contains("Cannot enforce AppArmor"));
    let strict = pod(json!({"securityContext": {"supplementalGroupsPolicy": "Strict"}}));
    let error = of_sandbox(&strict, Path::new("/profiles"));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("supplementalGroupsPolicy=Strict"), "{error}");
}
