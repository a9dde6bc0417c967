//! A rollout is changed by its page where that is allowed, and nowhere else.

use kennel_browser::{Options, key};
use serde_json::json;

use super::fixture::Page;

const POLICY: [(&str, &str); 1] = [("stages", "1 manual, 100%")];

#[test]
fn a_rollout_is_promoted_paused_and_taken_back() {
    let Some(page) = Page::open(6, &POLICY, &["--allow-changes"]) else {
        return;
    };
    let browser = &page.browser;
    browser.until_text(".mode", "changes allowed");
    page.rollout.apply("2");
    page.show_agent();
    page.wait_for_count("new", 1);
    browser.until_text(".title", "waits for promotion");

    // Pausing asks for a reason, which everybody reads.
    browser.press_button("Pause");
    browser.until_text("dialog", "Reason");
    browser.until(
        "the focus",
        "return document.activeElement?.id === 'reason';",
        &[],
    );
    browser.press("<b>lunch</b>");
    browser.press_button("Pause");
    browser.until_text("dialog .done", "");
    browser.press_button("Close");
    browser.until_text(".title", "paused");
    browser.until_text(".title", "<b>lunch</b>");
    browser.press_button("Resume");
    browser.until_text("dialog .effect", "");
    browser.press_button("Resume");
    browser.until(
        "what was done",
        "return document.querySelector('dialog .done') !== null;",
        &[],
    );
    browser.press(key::ESCAPE);
    browser.until_text(".title", "waits for promotion");

    // What a button will do is said first; closing does nothing.
    browser.press_button("Promote");
    browser.until_text("dialog", "kennel rollout promote");
    page.picture("promote");
    browser.press_button("Cancel");
    browser.until(
        "no dialog",
        "return document.querySelector('dialog') === null;",
        &[],
    );
    assert_eq!(page.rollout.nodes_with("2").len(), 1);
    browser.press_button("Promote");
    browser.until_text("dialog", "kennel rollout promote");
    browser.press_button("Promote");
    browser.until(
        "what was done",
        "return document.querySelector('dialog .done') !== null;",
        &[],
    );
    browser.press(key::ESCAPE);
    page.wait_for_count("new", 6);
    browser.until_text(".title", "complete");

    browser.press_button("Undo");
    browser.until_text("dialog .effect", "");
    browser.press_button("Undo");
    browser.until(
        "what was done",
        "return document.querySelector('dialog .done') !== null;",
        &[],
    );
    browser.press(key::ESCAPE);
    page.rollout.wait_for("outcome", "complete");
    assert_eq!(page.rollout.nodes_with("1").len(), 6);
    page.check_console();
}

#[test]
fn a_rollout_that_has_failed_is_tried_again() {
    let policy = [
        ("stages", "1, 100%"),
        ("max-restarts", "0"),
        ("on-failure", "pause"),
    ];
    let Some(page) = Page::open(4, &policy, &["--allow-changes"]) else {
        return;
    };
    let browser = &page.browser;
    page.rollout.apply("broken");
    page.show_agent();
    browser.until_text(".title", "failed, paused");
    browser.press_button("Retry");
    browser.until_text("dialog", "kennel rollout retry");
    browser.press_button("Retry");
    browser.until(
        "what was done",
        "return document.querySelector('dialog .done') !== null;",
        &[],
    );
    browser.press(key::ESCAPE);
    browser.until_text(".revisions", "attempt 2");
    page.rollout.wait_for("attempt", 2);
    page.check_console();
}

#[test]
fn what_a_button_does_is_said_in_chinese() {
    let chinese = Options {
        language: "zh-CN".to_owned(),
        ..Options::default()
    };
    let policy = [
        ("stages", "1 manual, 100%"),
        ("max-restarts", "0"),
        ("on-failure", "pause"),
    ];
    let Some(page) = Page::open_with(4, &policy, &["--allow-changes"], &chinese) else {
        return;
    };
    let browser = &page.browser;
    page.rollout.apply("2");
    page.show_agent();
    browser.until_text(".title .message", "阶段 1 / 2（1 manual）等待批准");
    browser.until_text(".problems", "继续下一阶段");
    browser.press_button("批准");
    browser.until_text("dialog .effect", "在阶段 1 之后继续发布");
    browser.press(key::ESCAPE);
    // And why a node has failed.
    page.rollout.apply("broken");
    page.wait_for_count("失败", 1);
    browser.until_text(".problems .reason", "重启了");
    page.picture("chinese");
    page.check_console();
}

#[test]
fn a_page_that_may_only_read_changes_nothing() {
    let Some(page) = Page::open(3, &POLICY, &[]) else {
        return;
    };
    let browser = &page.browser;
    browser.until_text(".mode", "read-only");
    page.rollout.apply("2");
    page.show_agent();
    browser.until_text(".title", "waits for promotion");
    let buttons = "return [...document.querySelectorAll('.actions')].every((e) => e.hidden);";
    assert_eq!(browser.run(buttons, &[]), true);
    // The commands to type are there.
    browser.until_text(".problems", "kennel rollout promote ds/agent");
    // Nor does the dashboard do what the page does not offer.
    let promote = "const body = JSON.stringify({verb: 'promote'});
        const headers = {'Content-Type': 'application/json'};
        const path = '/api/daemonsets/default/agent/rollout';
        const answer = await fetch(path, {method: 'POST', headers, body});
        return [answer.status, (await answer.json()).code];";
    assert_eq!(browser.run(promote, &[]), json!([403, "ReadOnly"]));
    let set = page.rollout.cluster.kubectl.get(&["ds", "agent"]).unwrap();
    let annotations = &set["metadata"]["annotations"];
    assert!(
        annotations["rollout.kennel.dev/promote"].is_null(),
        "{annotations}"
    );
    page.check_console();
}
