//! Images: there, not there, wrongly named, no longer used.

use kennel_node::runtime::{Error, PullPolicy, RegistryLogin, Runtime};
use kennel_testkit::machine::{Image, possible};

use crate::world::{IMAGE, World};

#[tokio::test]
async fn images_are_found_refused_and_collected() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    for image in [
        Image::new("kennel.test/named:1").user("nobody"),
        Image::new("kennel.test/numbered:latest").user("1234:5"),
        Image::new("kennel.test/spare:1").file("/spare", "spare"),
    ] {
        world.containerd.import(&image);
    }
    those_that_are_there_are_found(&world).await;
    those_that_cannot_be_had_are_refused(&world).await;
    those_that_nothing_uses_are_collected(&world).await;
}

async fn those_that_are_there_are_found(world: &World) {
    let named = "kennel.test/named:1";
    let image = world.cri.image(named, PullPolicy::IfNotPresent, &[]).await;
    let image = image.unwrap();
    assert_eq!((image.uid, image.username.as_str()), (None, "nobody"));
    assert!(image.reference.starts_with("sha256:"), "{image:?}");
    assert!(image.id.contains("sha256:"), "{image:?}");
    let numbered = "kennel.test/numbered";
    let image = world.cri.image(numbered, PullPolicy::Never, &[]).await;
    let image = image.unwrap();
    assert_eq!((image.uid, image.username.as_str()), (Some(1234), ""));
}

async fn refusal(world: &World, image: &str, policy: PullPolicy) -> (&'static str, String) {
    let login = RegistryLogin {
        username: "me".into(),
        password: "secret".into(),
        ..RegistryLogin::default()
    };
    match world.cri.image(image, policy, &[login]).await {
        Err(Error::Image { reason, message }) => (reason, message),
        other => panic!("{other:?}"),
    }
}

async fn those_that_cannot_be_had_are_refused(world: &World) {
    let (why, message) = refusal(world, "kennel.test/absent:1", PullPolicy::Never).await;
    assert_eq!(why, "ErrImageNeverPull");
    assert_eq!(
        message,
        r#"Container image "kennel.test/absent:1" is not present with pull policy of Never"#
    );
    let (why, message) = refusal(world, "Not An Image", PullPolicy::Always).await;
    assert_eq!(why, "InvalidImageName");
    assert!(
        message.starts_with(r#"Failed to apply default image tag "Not An Image": couldn't parse"#),
        "{message}"
    );
    // Nobody listens there.
    let nowhere = "127.0.0.1:1/absent:1";
    let (why, message) = refusal(world, nowhere, PullPolicy::IfNotPresent).await;
    assert_eq!(why, "ErrImagePull");
    assert!(message.starts_with("rpc error: code = "), "{message}");
    assert!(message.contains(nowhere), "{message}");
    assert!(!message.contains("secret"));
}

/// Two were asked for and are about to be used; one is in use; one makes sandboxes; one is spare.
async fn those_that_nothing_uses_are_collected(world: &World) {
    let pod = world.start(world.pod("web")).await;
    let app = world.script("app", "sleep 1000").await;
    world.run(&pod, &app).await;
    assert!(world.cri.remove_unused_images().await.unwrap() > 0);
    let (why, _) = refusal(world, "kennel.test/spare:1", PullPolicy::Never).await;
    assert_eq!(why, "ErrImageNeverPull");
    let kept = [
        "kennel.test/named:1",
        "kennel.test/numbered",
        "kennel.test/pause:1",
        IMAGE,
    ];
    for kept in kept {
        let found = world.cri.image(kept, PullPolicy::Never, &[]).await;
        assert!(found.is_ok(), "{kept}: {found:?}");
    }
}
