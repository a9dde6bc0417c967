//! The log of a daemon on a real node.

use kennel_browser::Options;
use kennel_testkit::Dashboard;
use serde_json::json;

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
    browser.press_button("Close the log");
    browser.until(
        "no log",
        "return document.querySelector('.log').hidden;",
        &[],
    );
}
