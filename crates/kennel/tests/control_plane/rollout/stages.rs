//! A rollout through its stages, and the plan that was right.

use kennel_testkit::{Deadline, eventually};

use super::fixture::{Fixture, WATCH, planned};

#[test]
fn r3_2_the_plan_says_which_nodes_each_stage_takes() {
    let policy = [("stages", "1, 50% manual, 100%")];
    let fixture = Fixture::new(6, &policy);
    let plan = fixture.plan("2");
    assert_eq!(plan["course"], "new", "{plan}");
    assert_eq!(planned(&plan, 1).len(), 1);
    let next = fixture.json(&["plan", "ds/agent"]);
    assert_eq!(next["course"], "next");
    assert_eq!(next["stages"], plan["stages"]);

    fixture.apply("2");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 4);
    assert!(
        shown.contains("stage 2 of 3 (50% manual) waits for a person"),
        "{shown}"
    );
    assert!(shown.contains("kennel rollout promote ds/agent"), "{shown}");
    assert_eq!(fixture.nodes_with("2"), planned(&plan, 2));

    let waiting = planned(&plan, 3);
    let waiting = waiting
        .difference(&planned(&plan, 2))
        .next()
        .unwrap()
        .clone();
    let why = fixture
        .cluster
        .why(&["ds/agent", "--node", &waiting])
        .stdout;
    assert!(
        why.contains("runs stable: stage 2 of 3 reaches 50%, this node is "),
        "{why}"
    );
    assert!(why.contains(" of 6 and comes with stage 3"), "{why}");
    let why = fixture.cluster.why(&["ds/agent"]).stdout;
    assert!(
        why.contains("runs stable: stage 2 of 3 reaches 50%, these come with stage 3"),
        "{why}"
    );

    let shown = fixture.check(&["promote", "ds/agent"], 0);
    assert!(shown.contains("daemonset/agent promoted: "), "{shown}");
    fixture.check(&["status", "ds/agent", WATCH], 0);
    assert_eq!(fixture.nodes_with("2"), planned(&plan, 3));
    let shown = fixture.check(&["promote", "ds/agent"], 1);
    assert!(
        shown.contains("is complete; there is nothing to promote"),
        "{shown}"
    );
}

#[test]
fn a_bake_is_shown_and_ended_by_hand() {
    let fixture = Fixture::new(3, &[("stages", "1 1h, 100% 1h")]);
    fixture.apply("2");
    fixture.wait_for("phase", "Baking");
    let shown = fixture.check(&["status", "ds/agent"], 3);
    assert!(
        shown.contains("Baking, 59m left") || shown.contains("Baking, 60m left"),
        "{shown}"
    );
    // Promotion of the first stage begins the second; --full ends all.
    fixture.check(&["promote", "ds/agent"], 0);
    fixture.wait_for("stage", 2);
    fixture.check(&["promote", "ds/agent", "--full"], 0);
    let shown = fixture.check(&["status", "ds/agent", WATCH], 0);
    assert!(shown.contains("complete, "), "{shown}");
    let history = fixture.json(&["history", "ds/agent"]);
    let verdicts = history["revisions"].as_array().unwrap().iter();
    let verdicts: Vec<_> = verdicts
        .map(|revision| revision["verdict"].clone())
        .collect();
    assert_eq!(verdicts, ["stable", "stable"]);
}

#[test]
fn a_watch_ends_with_its_timeout_and_reads_no_more_than_changes() {
    let log = ["--log", "info,kennel::request=debug"];
    let fixture = Fixture::with_flags(&log, "", 2, &[("stages", "1 1h, 100%")]);
    fixture.apply("2");
    fixture.wait_for("phase", "Baking");
    // The last change that the controller writes: the status follows the phase.
    let status = "jsonpath={.status.conditions[?(@.type=='Progressing')].reason} \
        {.status.updatedNumberScheduled} {.status.numberAvailable}";
    eventually(Deadline::seconds(60), || {
        let shown = fixture
            .cluster
            .kubectl
            .run(&["get", "ds", "agent", "-o", status]);
        (shown.stdout == "Baking 1 2")
            .then_some(())
            .ok_or(shown.stdout)
    });
    // Not those of kubectl above, whose last line may still be on its way into the log.
    let reads = || {
        let log = fixture.cluster.kennel.log();
        let read = "GET /apis/apps/v1/namespaces/default/daemonsets/agent 200 ";
        let is_read = |line: &&str| line.contains(read) && line.contains(" agent=kennel/");
        log.lines().filter(is_read).count()
    };
    let before = reads();
    let shown = fixture.check(&["status", "ds/agent", "--watch", "--timeout", "7s"], 3);
    assert!(shown.contains("stage 1 of 2 (1 1h)"), "{shown}");
    // At the start, and once more when the watches have begun.
    assert!(
        (1..=3).contains(&(reads() - before)),
        "{}",
        reads() - before
    );
}
