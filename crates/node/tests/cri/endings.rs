//! How containers end, and how soon that is told.

use std::time::Duration;

use kennel_core::pod::Exit;
use kennel_node::runtime::{Error, Limits, Runtime};
use kennel_testkit::machine::possible;
use tokio::time::Instant;

use crate::world::World;

#[tokio::test]
async fn containers_end_with_codes_and_reasons() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("batch")).await;
    let uid = pod.config.pod.uid.clone();

    for (name, script, code, reason) in [
        ("good", "exit 0", 0, "Completed"),
        ("bad", "exit 3", 3, "Error"),
        ("killed", "sh -c 'kill -9 $$'; exit $?", 137, "Error"),
    ] {
        let id = world.run(&pod, &world.script(name, script).await).await;
        let exit = world.ended(&uid, &id).await;
        assert_eq!((exit.code, exit.reason.as_str()), (code, reason), "{name}");
        assert!(
            exit.started_at.as_secs() > 1_600_000_000 && exit.finished_at >= exit.started_at,
            "{exit:?}"
        );
    }

    let mut greedy = world
        .script("greedy", "x=a; while :; do x=$x$x; done")
        .await;
    greedy.limits = Limits {
        memory: 16 << 20,
        ..Limits::default()
    };
    let id = world.run(&pod, &greedy).await;
    let exit = world.ended(&uid, &id).await;
    assert_eq!((exit.code, exit.reason.as_str()), (137, "OOMKilled"));

    let mut absent = world.script("absent", "").await;
    absent.command = vec!["/no/such/program".to_owned()];
    let id = world
        .cri
        .create(&pod.config, &pod.sandbox, &absent)
        .await
        .unwrap();
    let refused = world.cri.start(&id).await;
    let Err(Error::Failed(why)) = refused else {
        panic!("{refused:?}")
    };
    assert!(why.contains("/no/such/program"), "{why}");
    let Exit {
        code,
        reason,
        message,
        ..
    } = world.ended(&uid, &id).await;
    assert_eq!((code, reason.as_str()), (128, "StartError"));
    assert!(message.contains("/no/such/program"), "{message}");
}

#[tokio::test]
async fn an_end_is_told_without_delay_and_a_pod_at_rest_is_not_told_of() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("batch")).await;
    let quiet = world.start(world.pod("quiet")).await;
    world
        .run(&quiet, &world.script("rest", "sleep 1000").await)
        .await;
    let uid = pod.config.pod.uid.clone();

    // A chain of short ones, as init containers are: with a look every second it would take its time.
    let begun = Instant::now();
    for number in 0..5 {
        let id = world
            .run(
                &pod,
                &world.script(&format!("step-{number}"), "exit 0").await,
            )
            .await;
        world.ended(&uid, &id).await;
    }
    let each = begun.elapsed() / 5;
    assert!(each < Duration::from_millis(900), "{each:?} for each");

    // What was done before is heard; from then on there is nothing to say.
    while let Ok(Some(told)) =
        tokio::time::timeout(Duration::from_secs(2), world.changes.lock().await.recv()).await
    {
        assert!(!told.is_empty());
    }
    let id = world
        .run(&quiet, &world.script("brief", "exit 0").await)
        .await;
    world.ended(&quiet.config.pod.uid, &id).await;
}

#[tokio::test]
async fn the_signal_of_the_spec_ends_it_and_patience_ends() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("batch")).await;
    let uid = pod.config.pod.uid.clone();
    let script = "trap '' TERM; trap 'exit 9' USR1; while :; do sleep 0.1; done";

    let mut polite = world.script("polite", script).await;
    polite.stop_signal = "SIGUSR1".to_owned();
    let id = world.run(&pod, &polite).await;
    world.cri.stop(&id, Duration::from_secs(30)).await.unwrap();
    assert_eq!(world.ended(&uid, &id).await.code, 9);

    let stubborn = world.script("stubborn", script).await;
    let id = world.run(&pod, &stubborn).await;
    world.cri.stop(&id, Duration::from_secs(1)).await.unwrap();
    assert_eq!(world.ended(&uid, &id).await.code, 137);

    let mut odd = world.script("odd", script).await;
    odd.stop_signal = "SIGNONE".to_owned();
    let refused = world.cri.create(&pod.config, &pod.sandbox, &odd).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
}
