//! What a node and its daemons use.

use kennel_browser::Options;
use kennel_testkit::Dashboard;
use serde_json::json;

use super::fixture::{check_console, picture, start};
use super::real_node::{NODE, RealNode};
use crate::why::fixture::KENNEL;

#[test]
fn a_node_shows_what_it_and_its_daemons_use() {
    let Some(browser) = start(&Options::default()) else {
        return;
    };
    // Busy, until nobody reads what it writes any more.
    let command =
        "while :; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo busy || exit; done";
    let node = RealNode::start(command, "busy");
    let dashboard = Dashboard::start(KENNEL, &node.kennel.kubeconfig(), &[]);
    browser.open(dashboard.address());
    browser.until_text(".rows", "agent");
    let open = "location.hash = `#/node/${arguments[0]}`;";
    browser.run(open, &[json!(NODE)]);
    // The node: its processors and its memory, of what it has for pods.
    let meters = "const meters = [...document.querySelectorAll('.node-view .meter')];
        const used = meters.map((e) => [e.innerText, Number(e.querySelector('[role=meter]').ariaValueNow)]);
        return used.length === 2 && used.every(([text, share]) => / of /.test(text) && share > 0) && used;";
    let used = browser.until("what the node uses", meters, &[]);
    let text = used.to_string();
    assert!(text.contains("iB of "), "memory has a unit: {text}");
    // The daemon, which is busy.
    let daemon = "const cells = [...document.querySelectorAll('.node-view tbody tr td.number')];
        const [restarts, cpu, memory] = cells.map((e) => e.innerText);
        return /^[1-9]/.test(cpu) && /^[1-9][0-9.]* [KMG]iB$/.test(memory) && [restarts, cpu, memory];";
    let daemon = browser.until("what the daemon uses", daemon, &[]);
    assert_eq!(daemon[0], "0", "{daemon}");
    picture(&browser, "node_use");
    check_console(&browser);
}
