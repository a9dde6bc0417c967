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
    let named = Image::new("kennel.test/named:1").user("nobody");
    let numbered = Image::new("kennel.test/numbered:latest").user("1234:5");
    world.containerd.import(&named);
    world.containerd.import(&numbered);

    let image = world
        .cri
        .image("kennel.test/named:1", PullPolicy::IfNotPresent, &[])
        .await
        .unwrap();
    assert_eq!((image.uid, image.username.as_str()), (None, "nobody"));
    assert!(
        image.reference.starts_with("sha256:") && image.id.contains("sha256:"),
        "{image:?}"
    );
    let image = world
        .cri
        .image("kennel.test/numbered", PullPolicy::Never, &[])
        .await
        .unwrap();
    assert_eq!((image.uid, image.username.as_str()), (Some(1234), ""));

    let reason = |error: Error| match error {
        Error::Image { reason, message } => (reason, message),
        other => panic!("{other:?}"),
    };
    let never = world
        .cri
        .image("kennel.test/absent:1", PullPolicy::Never, &[])
        .await;
    let (why, message) = reason(never.unwrap_err());
    assert_eq!(why, "ErrImageNeverPull");
    assert_eq!(
        message,
        r#"Container image "kennel.test/absent:1" is not present with pull policy of Never"#
    );
    let wrong = world
        .cri
        .image("Not An Image", PullPolicy::Always, &[])
        .await;
    let (why, message) = reason(wrong.unwrap_err());
    assert_eq!(why, "InvalidImageName");
    assert!(
        message.starts_with(r#"Failed to apply default image tag "Not An Image": couldn't parse"#),
        "{message}"
    );

    // Nobody listens there, in a network that leads nowhere.
    let login = RegistryLogin {
        username: "me".into(),
        password: "secret".into(),
        ..RegistryLogin::default()
    };
    let refused = world
        .cri
        .image("127.0.0.1:1/absent:1", PullPolicy::IfNotPresent, &[login])
        .await;
    let (why, message) = reason(refused.unwrap_err());
    assert_eq!(why, "ErrImagePull");
    assert!(
        message.starts_with("rpc error: code = ") && message.contains("127.0.0.1:1/absent:1"),
        "{message}"
    );
    assert!(!message.contains("secret"));

    // The two that were asked for are about to be used; one is in use; one makes sandboxes.
    let spare = Image::new("kennel.test/spare:1").file("/spare", "spare");
    world.containerd.import(&spare);
    let pod = world.start(world.pod("web")).await;
    world
        .run(&pod, &world.script("app", "sleep 1000").await)
        .await;
    assert!(world.cri.remove_unused_images().await.unwrap() > 0);
    let spare = world
        .cri
        .image("kennel.test/spare:1", PullPolicy::Never, &[])
        .await;
    assert_eq!(reason(spare.unwrap_err()).0, "ErrImageNeverPull");
    for kept in [
        "kennel.test/named:1",
        "kennel.test/numbered",
        "kennel.test/pause:1",
        IMAGE,
    ] {
        let found = world.cri.image(kept, PullPolicy::Never, &[]).await;
        assert!(found.is_ok(), "{kept}: {found:?}");
    }
}
