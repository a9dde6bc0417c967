//! `kennel rollout hand-over`: what may go back to another controller, and what is left behind.

use std::process::Command;

use kennel_testkit::{Answer, Controller};

use super::fixture::{Fixture, WATCH};
use crate::why::fixture::{self as cluster, KENNEL};

fn hand_over(fixture: &Fixture, arguments: &[&str]) -> Answer {
    let mut command = Command::new(KENNEL);
    command.args(["rollout", "hand-over"]).args(arguments);
    command
        .arg("--kubeconfig")
        .arg(fixture.cluster.kennel.kubeconfig());
    cluster::answer(&mut command)
}

fn refused(fixture: &Fixture, words: &str) {
    for arguments in [&["--check"][..], &[]] {
        let answer = hand_over(fixture, arguments);
        assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
        let first = answer.stdout.lines().next().unwrap();
        assert!(first.starts_with("default/agent: "), "{first}");
        assert!(first.contains(words), "{first}");
        assert!(
            answer.stdout.contains("Not handed over."),
            "{}",
            answer.stdout
        );
    }
}

#[test]
fn r9_4_only_finished_rollouts_are_handed_over_and_our_conditions_go() {
    let flags = ["--simulate", "3", "--controllers=*,-daemonset-controller"];
    let cluster = cluster::Fixture::with("", &flags);
    let controller = Controller::start(KENNEL, &cluster.kennel.kubeconfig(), &[]);
    let fixture = Fixture::of(cluster, 3, &[("stages", "1 1h, 100%")]);
    fixture.apply("2");
    fixture.wait_for("phase", "Baking");
    refused(&fixture, "stage 1 of 2 (1 1h) bakes");
    fixture.check(&["abort", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 1);
    refused(&fixture, "has failed and is held");

    let kubectl = &fixture.cluster.kubectl;
    kubectl.run(&["rollout", "undo", "daemonset/agent"]).ok();
    fixture.check(&["status", "ds/agent", WATCH], 0);
    let complete =
        "Progressing=False Complete\nReconciling=False Complete\nStalled=False Complete\n";
    fixture.wait_for_conditions(complete);
    let answer = hand_over(&fixture, &["--check"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    fixture.wait_for_conditions(complete);

    assert!(controller.stop().success());
    let answer = hand_over(&fixture, &[]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(
        answer
            .stdout
            .contains("the rollout conditions of 1 were removed"),
        "{}",
        answer.stdout
    );
    fixture.wait_for_conditions("");
    assert_eq!(fixture.nodes_with("1").len(), 3);
}
