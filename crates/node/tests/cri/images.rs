//! Images: present, missing, with invalid names, unused.

use kennel_node::runtime::{Error, PullPolicy, RegistryLogin, Runtime};
use kennel_testkit::machine::{Image, possible};

use crate::fixture::{Fixture, IMAGE};

#[tokio::test]
async fn images_are_found_refused_and_removed() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    for image in [
        Image::new("kennel.test/named:1").user("nobody"),
        Image::new("kennel.test/numbered:latest").user("1234:5"),
        Image::new("kennel.test/spare:1").file("/spare", "spare"),
    ] {
        fixture.containerd.import(&image);
    }
    present_images_are_found(&fixture).await;
    missing_images_are_refused(&fixture).await;
    unused_images_are_removed(&fixture).await;
}

async fn present_images_are_found(fixture: &Fixture) {
    let named = "kennel.test/named:1";
    let image = fixture
        .cri
        .image(named, PullPolicy::IfNotPresent, &[])
        .await;
    let image = image.unwrap();
    assert_eq!((image.uid, image.username.as_str()), (None, "nobody"));
    assert!(image.reference.starts_with("sha256:"), "{image:?}");
    assert!(image.id.contains("sha256:"), "{image:?}");
    let numbered = "kennel.test/numbered";
    let image = fixture.cri.image(numbered, PullPolicy::Never, &[]).await;
    let image = image.unwrap();
    assert_eq!((image.uid, image.username.as_str()), (Some(1234), ""));
}

async fn refusal(fixture: &Fixture, image: &str, policy: PullPolicy) -> (String, String) {
    let login = RegistryLogin {
        username: "me".into(),
        password: "secret".into(),
        ..RegistryLogin::default()
    };
    match fixture.cri.image(image, policy, &[login]).await {
        Err(Error::Image { reason, message }) => (reason.to_string(), message),
        other => panic!("{other:?}"),
    }
}

async fn missing_images_are_refused(fixture: &Fixture) {
    let (why, message) = refusal(fixture, "kennel.test/absent:1", PullPolicy::Never).await;
    assert_eq!(why, "ErrImageNeverPull");
    assert_eq!(
        message,
        r#"Container image "kennel.test/absent:1" is not present with pull policy of Never"#
    );
    let (why, message) = refusal(fixture, "Not An Image", PullPolicy::Always).await;
    assert_eq!(why, "InvalidImageName");
    assert!(
        message.starts_with(r#"Failed to apply default image tag "Not An Image": couldn't parse"#),
        "{message}"
    );
    // No registry listens there.
    let nowhere = "127.0.0.1:1/absent:1";
    let (why, message) = refusal(fixture, nowhere, PullPolicy::IfNotPresent).await;
    assert_eq!(why, "ErrImagePull");
    assert!(message.starts_with("rpc error: code = "), "{message}");
    assert!(message.contains(nowhere), "{message}");
    assert!(!message.contains("secret"));
}

/// Two were asked for and are about to be used; one is in use; one makes sandboxes; one is spare.
async fn unused_images_are_removed(fixture: &Fixture) {
    let pod = fixture.start(fixture.pod("web")).await;
    let app = fixture.script("app", "sleep 1000").await;
    fixture.run(&pod, &app).await;
    assert!(fixture.cri.remove_unused_images().await.unwrap() > 0);
    let (why, _) = refusal(fixture, "kennel.test/spare:1", PullPolicy::Never).await;
    assert_eq!(why, "ErrImageNeverPull");
    let kept = [
        "kennel.test/named:1",
        "kennel.test/numbered",
        "kennel.test/pause:1",
        IMAGE,
    ];
    for kept in kept {
        let found = fixture.cri.image(kept, PullPolicy::Never, &[]).await;
        assert!(found.is_ok(), "{kept}: {found:?}");
    }
}
