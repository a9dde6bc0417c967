//! The log of a daemon on a real node.

use kennel_browser::Options;
use kennel_testkit::Dashboard;
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
