//! The log of a daemon on a real node.

use std::process::Command;

use kennel_browser::Options;
use kennel_testkit::{Dashboard, Deadline, Kubectl, Version, eventually};
use serde_json::json;

use super::accessibility::barriers;
use super::fixture::{picture, start};
use super::real_node::RealNode;
use crate::why::fixture::KENNEL;

#[test]
fn a_log_is_followed() {
    let Some(browser) = start(&Options::default()) else {
        return;
    };
    let command =
        "i=0; while :; do i=$((i+1)); echo \"line $i <b>bold</b>\" || exit; sleep 1; done";
    let node = RealNode::start(command, "line 2");
    let dashboard = Dashboard::start(KENNEL, &node.kennel.kubeconfig(), &[]);
    browser.open(dashboard.address());
    browser.until_text(".rows", "agent");
    browser.run("location.hash = '#/ds/default/agent?node=real';", &[]);
    browser.press_button("Log");
    browser.until_text(".log", "line 1 <b>bold</b>");
    let lines = "return document.querySelectorAll('.log-line').length;";
    let before = browser.run(lines, &[]).as_u64().unwrap();
    let grown = "return document.querySelectorAll('.log-line').length > arguments[0];";
    browser.until("a line that follows", grown, &[json!(before)]);
    browser.until_text(".log", "Following.");
    picture(&browser, "log");
    let found = barriers(&browser);
    assert!(found.is_empty(), "the log: {found:#?}");

    // It ends with the server, and continues once that is back.
    let RealNode { kennel, agent } = node;
    let shown = "return document.querySelectorAll('.log-line').length > 0;";
    let _kennel = kennel.crash_and_come_back_after(|| {
        browser.until_text(".log", "It is opened again by itself.");
        assert_eq!(
            browser.run(shown, &[]),
            true,
            "what was read is still shown"
        );
    });
    browser.until_text(".log", "Following.");
    let last = "const lines = [...document.querySelectorAll('.log-line')];
        return Number(lines.at(-1)?.textContent.match(/line (\\d+)/)?.[1] ?? 0);";
    let before = browser.run(last, &[]);
    let later = "const lines = [...document.querySelectorAll('.log-line')];
        return Number(lines.at(-1)?.textContent.match(/line (\\d+)/)?.[1] ?? 0) > arguments[0];";
    browser.until("later lines", later, &[before]);
    let twice =
        "const lines = [...document.querySelectorAll('.log-line')].map((e) => e.textContent);
        return lines.length - new Set(lines).size;";
    assert_eq!(browser.run(twice, &[]), 0, "lines are shown once");
    browser.press_button("Close the log");
    browser.until(
        "no log",
        "return document.querySelector('.log').hidden;",
        &[],
    );
    drop(agent);
}

#[test]
fn a_log_that_has_ended_is_opened_again_with_a_button() {
    let Some(browser) = start(&Options::default()) else {
        return;
    };
    // It shares the machine's process ids. Kubernetes makes one dollar sign of two.
    let command = "trap 'exit 1' USR1; echo \"container $$$$.\"; while :; do sleep 0.1; done";
    let node = RealNode::start(command, "container ");
    let kubectl = Kubectl::new(Version::V1_32, &node.kennel.kubeconfig());
    let first = kubectl.run(&["logs", "ds/agent"]).ok();
    let first = first.trim_end();
    let dashboard = Dashboard::start(KENNEL, &node.kennel.kubeconfig(), &[]);
    browser.open(dashboard.address());
    browser.until_text(".rows", "agent");
    browser.run("location.hash = '#/ds/default/agent?node=real';", &[]);
    browser.press_button("Log");
    browser.until_text(".log", first);
    browser.until_text(".log", "Following.");
    let offered = "return [...document.querySelectorAll('.log button')]
        .some((e) => e.innerText === 'Open again' && e.getClientRects().length > 0);";
    assert_eq!(browser.run(offered, &[]), false, "while it is followed");

    let process = first.trim_matches(|c: char| !c.is_ascii_digit());
    let killed = Command::new("kill").args(["-USR1", process]).status();
    assert!(killed.unwrap().success(), "process {process}");
    browser.until_text(".log", "End of the log.");
    browser.until_text(".log", first);
    let second = eventually(Deadline::seconds(60), || {
        let log = kubectl.run(&["logs", "ds/agent"]);
        let is_second = log.stdout.contains("container ") && !log.stdout.contains(first);
        let line = log.stdout.trim_end().to_owned();
        is_second.then_some(line).ok_or(log.stdout + &log.stderr)
    });
    browser.press_button("Open again");
    browser.until_text(".log", &second);
    browser.until_text(".log", "Following.");
    assert_eq!(browser.run(offered, &[]), false, "while it is followed");
    let before = "return document.querySelector('.log').innerText.includes(arguments[0]);";
    let before = browser.run(before, &[json!(first)]);
    assert_eq!(before, false, "of the container before");
}
