//! axe-core finds no barriers: roles, names, contrast, structure.

use kennel_browser::{Browser, Options};
use serde_json::{Value, json};

use super::fixture::{Page, tool};

/// What axe-core finds in the page as it is.
pub(super) fn barriers(browser: &Browser) -> Vec<String> {
    let path = tool("axe/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(&path);
    let axe =
        axe.unwrap_or_else(|_| panic!("{} is missing: run scripts/clients.sh", path.display()));
    // The page's security policy lets no other script in, but DevTools may.
    let evaluate = json!({"expression": axe});
    browser.devtools("Runtime.evaluate", &evaluate);
    let script = "const { violations } = await axe.run(document, {resultTypes: ['violations']});
        return violations.flatMap(({id, nodes}) => nodes.map(
            ({html, failureSummary}) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`));";
    let found = browser.run(script, &[]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.as_array().unwrap().iter().map(text).collect()
}

fn check(page: &Page, what: &str) {
    let found = barriers(&page.browser);
    assert!(found.is_empty(), "{what}: {found:#?}");
}

fn every_view(dark: bool) {
    let options = Options {
        dark,
        ..Options::default()
    };
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let Some(page) = Page::open_with(7, &policy, &["--allow-changes"], &options) else {
        return;
    };
    let browser = &page.browser;
    check(&page, "all DaemonSets");
    browser.press("?");
    browser.until_text("dialog", "Keys");
    check(&page, "the keys");
    browser.press_button("Close");
    page.rollout.apply("broken");
    page.show_agent();
    page.wait_for_count("failed", 1);
    browser.until_text(".actions", "Retry");
    check(&page, "a DaemonSet");
    for (tab, shown) in [
        ("Events", ".events li"),
        ("History", ".revision-list li"),
        ("Changes", ".diff-line"),
    ] {
        browser.press_button(tab);
        browser.until(
            shown,
            "return document.querySelector(arguments[0]);",
            &[json!(shown)],
        );
        check(&page, tab);
    }
    browser.press_button("Abort");
    browser.until_text("dialog", "kennel rollout abort");
    check(&page, "a dialog");
    browser.press_button("Cancel");
    browser.press_button("Table");
    browser.until_text(".node-table tbody", "sim-");
    check(&page, "the table");
    browser.click(".node-table tbody button");
    browser.until_text(".node-panel", "kennel why");
    check(&page, "a node of a DaemonSet");
    page.go("#/node/sim-1");
    browser.until_text(".node-view", "Conditions");
    check(&page, "a node");
    page.picture(if dark { "dark" } else { "light" });
    page.check_console();
}

#[test]
fn light_views_have_no_barriers() {
    every_view(false);
}

#[test]
fn dark_views_have_no_barriers() {
    every_view(true);
}
