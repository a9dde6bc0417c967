//! Exits of containers, and how soon they are reported.

use std::time::Duration;

use kennel_core::pod::Exit;
use kennel_node::runtime::{Error, Limits, Runtime};
use kennel_testkit::machine::possible;
use tokio::time::Instant;

use crate::fixture::Fixture;

#[tokio::test]
async fn exits_have_codes_and_reasons() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("batch")).await;
    let uid = pod.config.pod.uid.clone();

    for (name, script, code, reason) in [
        ("good", "exit 0", 0, "Completed"),
        ("bad", "exit 3", 3, "Error"),
        ("killed", "sh -c 'kill -9 $$'; exit $?", 137, "Error"),
    ] {
        let id = fixture.run(&pod, &fixture.script(name, script).await).await;
        let exit = fixture.exit_of(&uid, &id).await;
        assert_eq!((exit.code, exit.reason.as_str()), (code, reason), "{name}");
        assert!(
            exit.started_at.as_secs() > 1_600_000_000 && exit.finished_at >= exit.started_at,
            "{exit:?}"
        );
    }

    let mut greedy = fixture
        .script("greedy", "x=a; while :; do x=$x$x; done")
        .await;
    greedy.limits = Limits {
        memory: 16 << 20,
        ..Limits::default()
    };
    let id = fixture.run(&pod, &greedy).await;
    // containerd may say `Error` at first.
    let is_corrected = |exit: &Exit| exit.reason != "Error";
    let exit = fixture.exit_that(&uid, &id, is_corrected).await;
    assert_eq!((exit.code, exit.reason.as_str()), (137, "OOMKilled"));

    let mut absent = fixture.script("absent", "").await;
    absent.command = vec!["/no/such/program".to_owned()];
    let id = fixture
        .cri
        .create(&pod.config, &pod.sandbox, &absent)
        .await
        .unwrap();
    let refused = fixture.cri.start(&id).await;
    let Err(Error::Failed(why)) = refused else {
        panic!("{refused:?}")
    };
    assert!(why.contains("/no/such/program"), "{why}");
    let Exit {
        code,
        reason,
        message,
        ..
    } = fixture.exit_of(&uid, &id).await;
    assert_eq!((code, reason.as_str()), (128, "StartError"));
    assert!(message.contains("/no/such/program"), "{message}");
}

#[tokio::test]
async fn an_exit_is_reported_at_once_and_unchanged_pods_are_not() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("batch")).await;
    let quiet = fixture.start(fixture.pod("quiet")).await;
    fixture
        .run(&quiet, &fixture.script("rest", "sleep 1000").await)
        .await;
    let uid = pod.config.pod.uid.clone();

    // A chain of short ones, as init containers are: with a look every second it would take its time.
    let begun = Instant::now();
    for number in 0..5 {
        let id = fixture
            .run(
                &pod,
                &fixture.script(&format!("step-{number}"), "exit 0").await,
            )
            .await;
        fixture.exit_of(&uid, &id).await;
    }
    let each = begun.elapsed() / 5;
    assert!(each < Duration::from_millis(900), "{each:?} for each");

    // Drains the changes of the setup; from then on there must be none.
    while let Ok(Some(told)) =
        tokio::time::timeout(Duration::from_secs(2), fixture.changes.lock().await.recv()).await
    {
        assert!(!told.is_empty());
    }
    let id = fixture
        .run(&quiet, &fixture.script("brief", "exit 0").await)
        .await;
    fixture.exit_of(&quiet.config.pod.uid, &id).await;
}

#[tokio::test]
async fn the_stop_signal_of_the_spec_is_sent_and_the_grace_period_is_kept() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("batch")).await;
    let uid = pod.config.pod.uid.clone();
    let script = "trap '' TERM; trap 'exit 9' USR1; while :; do sleep 0.1; done";

    let mut polite = fixture.script("polite", script).await;
    polite.stop_signal = "SIGUSR1".to_owned();
    let id = fixture.run(&pod, &polite).await;
    fixture
        .cri
        .stop(&id, Duration::from_secs(30))
        .await
        .unwrap();
    assert_eq!(fixture.exit_of(&uid, &id).await.code, 9);

    let stubborn = fixture.script("stubborn", script).await;
    let id = fixture.run(&pod, &stubborn).await;
    fixture.cri.stop(&id, Duration::from_secs(1)).await.unwrap();
    assert_eq!(fixture.exit_of(&uid, &id).await.code, 137);

    let mut odd = fixture.script("odd", script).await;
    odd.stop_signal = "SIGNONE".to_owned();
    let refused = fixture.cri.create(&pod.config, &pod.sandbox, &odd).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
}
