//! A rollout is seen as it happens.

use serde_json::json;

use super::fixture::Page;

#[test]
fn a_rollout_is_seen_as_it_happens() {
    let policy = [("stages", "2 4s, 50% manual, 100%")];
    let Some(page) = Page::open(30, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    page.show_agent();
    page.wait_for_count("new", 30);
    browser.until_text(".title", "complete");
    // The clock of the stage is recorded from here on.
    let record = "window.seen = new Set();
        const look = () => window.seen.add(document.querySelector('.stage-step[data-state=present] .clock')?.textContent);
        new MutationObserver(look).observe(document.querySelector('main'),
            {subtree: true, childList: true, characterData: true, attributes: true});";
    browser.run(record, &[]);
    page.rollout.apply("2");
    page.wait_for_count("new", 15);
    page.wait_for_count("waiting", 15);
    browser.until_text(".stages", "waits for a person");
    let title = browser.until(
        "the title of the tab",
        "return document.title.startsWith('●') && document.title;",
        &[],
    );
    assert_eq!(title, "● agent · Kennel");
    let seen = browser.run("return [...window.seen];", &[]);
    let bakes = seen.as_array().unwrap().iter();
    let bakes = bakes.filter(|text| text.as_str().is_some_and(|t| t.starts_with("bakes, ")));
    assert!(bakes.count() >= 1, "the clock of the bake: {seen}");

    page.rollout.check(&["promote", "ds/agent"], 0);
    page.wait_for_count("new", 30);
    browser.until_text(".title", "complete");
    browser.until(
        "no mark",
        "return document.title === 'agent · Kennel';",
        &[],
    );
    page.check_console();
}

#[test]
fn nodes_join_fail_and_leave() {
    let policy = [
        ("stages", "1, 100%"),
        ("max-restarts", "0"),
        ("on-failure", "rollback"),
    ];
    let Some(page) = Page::open(5, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    let kubectl = &page.rollout.cluster.kubectl;
    page.show_agent();
    page.wait_for_count("new", 5);
    // A node without an agent joins: nothing makes its pod ready.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late-1"}});
    kubectl
        .run_with_input(&["create", "-f", "-"], &node.to_string())
        .ok();
    page.wait_for_count("down", 1);
    browser.until_text(".problems", "late-1");
    kubectl.run(&["delete", "node", "late-1"]).ok();
    page.wait_for_count("down", 0);
    browser.until_text(".problems", "No node has failed or is down.");

    page.rollout.apply("broken");
    browser.until_text(".title", "failed, held");
    page.wait_for_count("failed", 0);
    // Back on version 1, which is not the template's.
    browser.until_text(".title .message", "has failed and is held");
    browser.press_button("History");
    browser.until_text(".history", "failed");
    page.picture("held");
    page.check_console();
}
