//! A restart of containerd, during which containers keep running.

use kennel_node::runtime::{Error, Runtime};
use kennel_testkit::machine::possible;
use tokio::time::timeout;

use crate::fixture::{DEADLINE, Fixture};

#[tokio::test]
async fn containers_survive_a_restart_of_the_runtime() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("web")).await;
    let uid = pod.config.pod.uid.clone();
    let flag = fixture.containerd.directory().join("flag");
    let mut config = fixture
        .script(
            "app",
            "while [ ! -e /run/test/flag ]; do sleep 0.1; done; exit 4",
        )
        .await;
    config.mounts = vec![kennel_node::runtime::Mount {
        container_path: "/run/test".into(),
        host_path: fixture.containerd.directory().to_owned(),
        ..kennel_node::runtime::Mount::default()
    }];
    let id = fixture.run(&pod, &config).await;
    let before = fixture.inspect(&uid).await.runs;

    fixture.containerd.kill();
    for answer in [
        fixture.cri.list().await.map(|_| ()),
        fixture.cri.inspect(&uid).await.map(|_| ()),
        fixture.cri.start(&id).await,
        fixture.cri.stop_sandbox(&pod.sandbox).await,
        fixture
            .cri
            .create(&pod.config, &pod.sandbox, &config)
            .await
            .map(|_| ()),
    ] {
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    }
    let health = fixture.cri.health().await;
    assert!(
        health
            .runtime
            .unwrap()
            .starts_with("container runtime is down: ")
    );

    fixture.containerd.start_again();
    // All is to be looked at, and all is as it was.
    loop {
        let told = timeout(DEADLINE, fixture.changes.lock().await.recv())
            .await
            .unwrap()
            .unwrap();
        if told.is_empty() {
            break;
        }
    }
    assert_eq!(fixture.inspect(&uid).await.runs, before);

    // What ends while it is away is known afterwards.
    fixture.containerd.kill();
    std::fs::write(flag, "").unwrap();
    fixture.containerd.start_again();
    let exit = fixture.exit_of(&uid, &id).await;
    assert_eq!(exit.code, 4);
    assert_eq!(fixture.cri.health().await.runtime, None);
}
