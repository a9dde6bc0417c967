//! Images that are pulled: from a registry that is open, and from one that wants a password.

use kennel_testkit::machine::{Image, Registry};
use serde_json::{Value, json};

use super::fleet::{Engine, Fleet, has_event, is_ready};

const USER: &str = "reader";
const PASSWORD: &str = "a good secret";

#[test]
fn images_are_pulled_with_and_without_secrets() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let fleet = Fleet::new(Engine::Containerd, 1, &[]);
    let containerd = fleet.machines[0].containerd();
    let gateway = containerd.network().gateway();
    let open = Registry::open(gateway);
    let locked = Registry::locked(gateway, USER, PASSWORD);
    containerd.trust(&open);
    containerd.trust(&locked);
    let private = locked.serve(&Image::new("team/private:1"));
    // All that waits is begun first and looked at last.
    begin_with_wrong_secrets(&fleet, &locked, &private);
    begin_with_a_secret_that_is_mended(&fleet, &locked);
    policies_are_kept(&fleet, &open);
    wrong_secrets_are_told(&fleet, &locked, &private);
    right_secrets_open(&fleet, &locked, &private);
    // The image is on the node now, so that `imagePullPolicy: Never` finds it.
    fleet.pod("never", is_ready);
    fleet.pod("late", is_ready);
}

/// A pod of one image, with a secret if it is named.
fn pod(name: &str, image: &str, policy: &str, secret: &str) -> String {
    let secrets: Vec<Value> = match secret {
        "" => Vec::new(),
        name => vec![json!({ "name": name })],
    };
    let container = json!({"name": "c", "image": image, "imagePullPolicy": policy});
    let spec = json!({"terminationGracePeriodSeconds": 0, "containers": [container], "imagePullSecrets": secrets});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}).to_string()
}

fn waits(reason: &'static str) -> impl Fn(&Value) -> bool {
    move |pod| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
}

fn policies_are_kept(fleet: &Fleet, open: &Registry) {
    let image = open.serve(&Image::new("app:1"));
    fleet.apply(&pod("never", &image, "Never", ""));
    fleet.pod("never", waits("ErrImageNeverPull"));
    assert_eq!(open.asked(&image), 0, "nobody was to ask for it");

    fleet.apply(&pod("first", &image, "IfNotPresent", ""));
    let first = fleet.pod("first", is_ready);
    let id = first["status"]["containerStatuses"][0]["imageID"].as_str();
    let by_digest = format!("{}/app@sha256:", open.name());
    assert!(id.unwrap().starts_with(&by_digest), "{id:?}");
    has_event(fleet, "first", &format!("Pulling image \"{image}\""));
    let pulled = format!("Successfully pulled image \"{image}\" in ");
    has_event(fleet, "first", &pulled);
    has_event(fleet, "first", "spec.containers{c}");
    let asked = open.asked(&image);
    assert!(asked > 0);

    fleet.apply(&pod("second", &image, "IfNotPresent", ""));
    fleet.pod("second", is_ready);
    let there = format!("Container image \"{image}\" already present on machine");
    has_event(fleet, "second", &there);
    assert_eq!(open.asked(&image), asked, "it was there");

    // The tag names another image now: `Always` gets that one, the other policies the one on the node.
    open.serve(&Image::new("app:1").file("/new", "new"));
    fleet.apply(&pod("always", &image, "Always", ""));
    let always = fleet.pod("always", is_ready);
    assert!(open.asked(&image) > asked);
    let new = &always["status"]["containerStatuses"][0]["imageID"];
    assert_ne!(new.as_str(), id);
    let content = ["exec", "always", "--", "cat", "/new"];
    assert_eq!(fleet.kubectl.run(&content).ok(), "new");
}

fn create_secret(fleet: &Fleet, name: &str, registry: &Registry, password: &str) {
    let server = format!("--docker-server={}", registry.name());
    let user = format!("--docker-username={USER}");
    let password = format!("--docker-password={password}");
    let create = [
        "create",
        "secret",
        "docker-registry",
        name,
        &server,
        &user,
        &password,
        "--dry-run=client",
        "-o",
        "json",
    ];
    let secret = fleet.kubectl.run(&create).ok();
    fleet.apply(&secret);
}

fn begin_with_wrong_secrets(fleet: &Fleet, locked: &Registry, image: &str) {
    create_secret(fleet, "wrong", locked, "a guess");
    fleet.apply(&pod("stranger", image, "IfNotPresent", ""));
    fleet.apply(&pod("guesser", image, "IfNotPresent", "wrong"));
    fleet.apply(&pod("absent", image, "IfNotPresent", "no-such"));
}

fn wrong_secrets_are_told(fleet: &Fleet, locked: &Registry, image: &str) {
    for name in ["stranger", "guesser", "absent"] {
        let pod = fleet.pod(name, waits("ImagePullBackOff"));
        assert_eq!(pod["status"]["phase"], "Pending");
        let message = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"];
        let message = message.as_str().unwrap();
        let begin = format!("Back-off pulling image \"{image}\": ErrImagePull: ");
        assert!(message.starts_with(&begin), "{message}");
        assert!(!message.contains("a guess"), "{message}");
        has_event(fleet, name, &format!("Failed to pull image \"{image}\": "));
        has_event(fleet, name, "401 Unauthorized");
        has_event(fleet, name, "Error: ErrImagePull");
        has_event(fleet, name, "Error: ImagePullBackOff");
    }
    let missing = "Unable to retrieve some image pull secrets (no-such)";
    has_event(fleet, "absent", missing);
    assert_eq!(locked.asked(image), 0, "it was given to strangers");
}

fn right_secrets_open(fleet: &Fleet, locked: &Registry, image: &str) {
    create_secret(fleet, "right", locked, PASSWORD);
    fleet.apply(&pod("friend", image, "Always", "right"));
    fleet.pod("friend", is_ready);
    assert!(locked.asked(image) > 0);
    // One that the service account brings along opens, too.
    let account = r#"{"imagePullSecrets": [{"name": "right"}]}"#;
    let patch = ["patch", "serviceaccount", "default", "-p", account];
    fleet.kubectl.run(&patch).ok();
    let before = locked.asked(image);
    fleet.apply(&pod("member", image, "Always", ""));
    let member = fleet.pod("member", is_ready);
    assert_eq!(member["spec"]["imagePullSecrets"][0]["name"], "right");
    assert!(locked.asked(image) > before);
}

fn begin_with_a_secret_that_is_mended(fleet: &Fleet, locked: &Registry) {
    let other = locked.serve(&Image::new("team/other:1"));
    create_secret(fleet, "late", locked, "a guess");
    fleet.apply(&pod("late", &other, "IfNotPresent", "late"));
    fleet.pod("late", waits("ImagePullBackOff"));
    create_secret(fleet, "late", locked, PASSWORD);
}
