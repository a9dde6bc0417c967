//! containerd goes away and comes back; what it ran goes on.

use kennel_node::runtime::{Error, Runtime};
use kennel_testkit::machine::possible;
use tokio::time::timeout;

use crate::world::{PATIENCE, World};

#[tokio::test]
async fn while_the_runtime_is_away_nothing_is_known_and_nothing_is_lost() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("web")).await;
    let uid = pod.config.pod.uid.clone();
    let flag = world.containerd.directory().join("flag");
    let mut config = world
        .script(
            "app",
            "while [ ! -e /run/test/flag ]; do sleep 0.1; done; exit 4",
        )
        .await;
    config.mounts = vec![kennel_node::runtime::Mount {
        container_path: "/run/test".into(),
        host_path: world.containerd.directory().to_owned(),
        ..kennel_node::runtime::Mount::default()
    }];
    let id = world.run(&pod, &config).await;
    let before = world.look(&uid).await.runs;

    world.containerd.kill();
    for answer in [
        world.cri.list().await.map(|_| ()),
        world.cri.look(&uid).await.map(|_| ()),
        world.cri.start(&id).await,
        world.cri.stop_sandbox(&pod.sandbox).await,
        world
            .cri
            .create(&pod.config, &pod.sandbox, &config)
            .await
            .map(|_| ()),
    ] {
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    }
    let health = world.cri.health().await;
    assert!(
        health
            .runtime
            .unwrap()
            .starts_with("container runtime is down: ")
    );

    world.containerd.start_again();
    // All is to be looked at, and all is as it was.
    loop {
        let told = timeout(PATIENCE, world.changes.lock().await.recv())
            .await
            .unwrap()
            .unwrap();
        if told.is_empty() {
            break;
        }
    }
    assert_eq!(world.look(&uid).await.runs, before);

    // What ends while it is away is known afterwards.
    world.containerd.kill();
    std::fs::write(flag, "").unwrap();
    world.containerd.start_again();
    let exit = world.ended(&uid, &id).await;
    assert_eq!(exit.code, 4);
    assert_eq!(world.cri.health().await.runtime, None);
}
