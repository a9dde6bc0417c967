//! What reports show, and that nothing of a cluster becomes markup.

use kennel_core::picture::Counts;
use kennel_core::rollout::Outcome;
use kennel_types::Timestamp;

use super::axis::Axis;
use super::{html, millis_text, svg};
use crate::record::{Change, Durations, EventNote, Failure, PhaseNote, Recording, Source, Spans};

fn recording(nodes: usize) -> Recording {
    let began = Timestamp::from_secs(1_000_000);
    let change = |at, node, letter| Change { at, node, letter };
    let changes = vec![
        change(1_000, 0, b'u'),
        change(3_000, 0, b'n'),
        change(4_000, 1, b'u'),
        change(6_000, 1, b'f'),
        change(9_000, 1, b'o'),
    ];
    let phase = |at, phase: &str, stage| PhaseNote {
        at,
        phase: phase.to_owned(),
        stage,
    };
    Recording {
        schema: "kennel-rollout-report/1",
        source: Source::Recorded,
        notes: vec!["a <note>".to_owned()],
        namespace: "default".to_owned(),
        name: "agent".to_owned(),
        target: Some("7c9f".to_owned()),
        stable: Some("5d8b".to_owned()),
        policy: Some("1 2s, 100%".to_owned()),
        outcome: Outcome::Failed,
        message: "7c9f has failed and is held".to_owned(),
        began,
        ended: began.saturating_add_millis(10_000),
        nodes: (1..=nodes).map(|number| format!("node-{number}")).collect(),
        initial: "w".repeat(nodes),
        durations: Durations::of(Spans::of(&vec![b'w'; nodes], &changes).update_times()),
        changes,
        phases: vec![
            phase(500, "Updating", Some(1)),
            phase(6_500, "RollingBack", None),
        ],
        stages: Vec::new(),
        failures: vec![Failure {
            node: "node-2".to_owned(),
            at: Some(6_000),
            until: Some(9_000),
            message: "</script><script>alert(1)</script>&\"'".to_owned(),
        }],
        counts: Counts::default(),
        events: vec![EventNote {
            time: began,
            warning: true,
            reason: "NodeFailed".to_owned(),
            message: "<img src=x onerror=alert(1)>".to_owned(),
        }],
    }
}

#[test]
fn a_picture_shows_each_node_over_time_with_phases_and_failures() {
    let svg = svg(&recording(3));
    for expected in [
        "DaemonSet default/agent: 5d8b → 7c9f",
        ">node-3</text>",
        "class=\"updating\"",
        "class=\"failed\"",
        ">stage 1</text>",
        ">failed, goes back</text>",
        "node-2 failed after 6.0s: &lt;/script&gt;",
        "3 nodes · stages 1 2s, 100% · 2 reached · took 10.0s · 2.0s a node (median)",
    ] {
        assert!(svg.contains(expected), "{expected}: {svg}");
    }
}

#[test]
fn many_nodes_share_rows_and_the_picture_stays_small() {
    let large = svg(&recording(5_000));
    assert!(large.contains("a row is 13 nodes"));
    assert!(large.len() < 200_000, "{} bytes", large.len());
    assert!(!large.contains("node-17"));
    let mut none = recording(0);
    none.changes.clear();
    assert!(svg(&none).contains("0 nodes"));
}

#[test]
fn nothing_of_a_cluster_becomes_markup() {
    let page = html(&recording(3)).unwrap();
    assert_eq!(
        page.matches("</script>").count(),
        2,
        "the data and the script"
    );
    assert!(!page.contains("<img"));
    assert!(page.contains("a &lt;note&gt;"));
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
}

#[test]
fn a_page_loads_nothing_and_allows_only_its_own_script() {
    let page = html(&recording(3)).unwrap();
    assert!(page.contains("default-src 'none'"));
    for forbidden in [
        "http://",
        "https://",
        "unsafe-inline",
        "style=\"",
        "onclick",
    ] {
        let without = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!without.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn the_data_of_a_page_is_the_json_report() {
    let page = html(&recording(3)).unwrap();
    let data = page.split("id=\"recording\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data, serde_json::to_value(recording(3)).unwrap());
    assert_eq!(data["changes"][0], serde_json::json!([1000, 0, "u"]));
    assert_eq!(data["failures"][0]["at"], 6000);
}

#[test]
fn axes_have_few_round_ticks_for_any_length() {
    let mut length = 1;
    while length < 400 * 86_400_000 {
        let axis = Axis {
            left: 0.0,
            right: 100.0,
            length,
        };
        let ticks = axis.ticks();
        assert!((1..=11).contains(&ticks.len()), "{length}: {ticks:?}");
        length = length * 3 + 1;
    }
    let axis = Axis {
        left: 0.0,
        right: 100.0,
        length: 90_000,
    };
    let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
    assert_eq!(
        labels.join(" "),
        "0 s 10 s 20 s 30 s 40 s 50 s 1:00 1:10 1:20 1:30"
    );
    assert_eq!(millis_text(999), "999ms");
    assert_eq!(millis_text(12_345), "12.3s");
    assert_eq!(millis_text(3_600_000), "60m");
}
