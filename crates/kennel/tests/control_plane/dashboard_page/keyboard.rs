//! Everything can be reached and done by keyboard.

use std::collections::BTreeSet;

use kennel_browser::key;
use serde_json::json;

use super::fixture::Page;

/// More stops than the page has.
const TABS_MAX: usize = 80;

#[test]
fn the_page_is_used_by_keyboard_alone() {
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let Some(page) = Page::open(9, &policy, &["--allow-changes"]) else {
        return;
    };
    let browser = &page.browser;
    // To a DaemonSet: search, then the link.
    browser.press("/");
    browser.until(
        "the search",
        "return document.activeElement?.type === 'search';",
        &[],
    );
    browser.press("agent");
    browser.press(key::TAB);
    browser.press(key::TAB);
    browser.until(
        "the link",
        "return document.activeElement?.matches('.rows a') === true;",
        &[],
    );
    browser.press(key::ENTER);
    page.wait_for_picture();
    browser.until(
        "the heading",
        "return document.activeElement?.matches('h1') === true;",
        &[],
    );

    // Every control has a stop, and the focus is seen at each.
    page.rollout.apply("broken");
    page.wait_for_count("failed", 1);
    browser.until_text(".actions", "Retry");
    let stops = walk(&page);
    for stop in [
        "Retry",
        "Abort",
        "Table",
        "Problems",
        "waffle",
        "Copy: kennel rollout abort ds/agent",
    ] {
        assert!(
            stops.iter().any(|found| found.contains(stop)),
            "{stop} in {stops:#?}"
        );
    }

    through_the_picture(&page);
    tabs_and_dialogs(&page);
    page.check_console();
}

/// By arrows, to the node that has failed by `n`, and back by Escape.
fn through_the_picture(page: &Page) {
    let browser = &page.browser;
    browser.run("document.querySelector('.waffle').focus();", &[]);
    let option =
        "return document.querySelector('.waffle [role=option]:not([hidden])').textContent;";
    browser.press(key::RIGHT);
    let first = browser.run(option, &[]);
    browser.press(key::RIGHT);
    browser.press(key::DOWN);
    assert_ne!(browser.run(option, &[]), first);
    browser.press(key::HOME);
    browser.press("n");
    let failed = browser.run(option, &[]);
    assert!(failed.as_str().unwrap().contains(", failed, "), "{failed}");
    browser.until_text(".node-panel", "exited with code 1");
    browser.press(key::ESCAPE);
    browser.until(
        "no node",
        "return document.querySelector('.node-panel').hidden;",
        &[],
    );
    browser.until(
        "the picture",
        "return document.activeElement?.matches('.waffle') === true;",
        &[],
    );
}

fn tabs_and_dialogs(page: &Page) {
    let browser = &page.browser;
    // Tabs by arrows.
    browser.run("document.getElementById('tab-problems').focus();", &[]);
    browser.press(key::RIGHT);
    browser.until_text("[role=tabpanel]:not([hidden])", "RolloutStarted");

    // Aborting, and closing the dialog. The focus comes back to where it was.
    browser.run("[...document.querySelectorAll('.actions button')].find((b) => b.textContent === 'Abort').focus();", &[]);
    browser.press(key::ENTER);
    browser.until_text("dialog", "kennel rollout abort");
    browser.press(key::ESCAPE);
    browser.until(
        "no dialog",
        "return document.querySelector('dialog') === null;",
        &[],
    );
    let focus = browser.run("return document.activeElement.textContent;", &[]);
    assert_eq!(focus, json!("Abort"));
    browser.press("?");
    browser.until_text("dialog", "Keys");
    browser.press(key::ESCAPE);
}

/// What has the focus at each stop of the key Tab, until it comes back to the first.
fn walk(page: &Page) -> BTreeSet<String> {
    let focus = "const e = document.activeElement;
        const style = getComputedStyle(e);
        const isControl = e.matches('a, button, input, select, summary');
        const text = isControl ? e.innerText || e.placeholder || e.type : e.id;
        const name = e.getAttribute('aria-label') ?? text;
        const seen = style.outlineStyle !== 'none' || e === document.body;
        return [`${e.className} ${name}`.trim(), seen];";
    let mut stops = BTreeSet::new();
    for _ in 0..TABS_MAX {
        page.browser.press(key::TAB);
        let stop = page.browser.run(focus, &[]);
        let name = stop[0].as_str().unwrap().to_owned();
        assert_eq!(stop[1], true, "the focus is not seen at {name}");
        stops.insert(name);
    }
    stops
}
