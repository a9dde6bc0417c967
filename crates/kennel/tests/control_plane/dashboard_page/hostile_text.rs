//! Names, annotations and messages are text, whatever they look like.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::fixture::Page;
use super::views::point_at_cell;

const SCRIPT: &str = "<img src=x onerror=\"window.owned=1\"><script>window.owned=1</script>";
/// Longer than any layout expects.
const HUGE: usize = 60_000;

#[test]
fn hostile_text_is_text() {
    let policy = [("stages", "1 manual, 100%")];
    let Some(page) = Page::open(3, &policy, &["--allow-changes"]) else {
        return;
    };
    let browser = &page.browser;
    let kubectl = &page.rollout.cluster.kubectl;
    let mut set: Value = serde_json::from_str(&page.rollout.manifest("2")).unwrap();
    let annotations = &mut set["metadata"]["annotations"];
    annotations["kubernetes.io/change-cause"] = json!(format!("{SCRIPT} cause"));
    annotations["rollout.kennel.dev/pause"] = json!(format!("{SCRIPT} reason"));
    let template = &mut set["spec"]["template"]["metadata"];
    template["annotations"] =
        json!({"note": format!("{SCRIPT} template"), "long": "x".repeat(HUGE)});
    kubectl
        .run_with_input(&["apply", "-f", "-"], &set.to_string())
        .ok();
    let owner = kubectl.get(&["ds", "agent"]).unwrap();
    let event = json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "hostile", "namespace": "default"},
        "involvedObject": {"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "default",
            "name": "agent", "uid": owner["metadata"]["uid"]},
        "type": "Warning", "reason": "Hostile", "message": format!("{SCRIPT} {}", "long".repeat(200)),
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2030-01-01T00:00:00Z", "count": 1,
        "source": {"component": "test"}});
    kubectl
        .run_with_input(&["create", "-f", "-"], &event.to_string())
        .ok();
    let condition = json!({"status": {"conditions": [{"type": "Hostile", "status": "True",
        "reason": "Script", "message": SCRIPT}]}});
    // No agent takes it away on this one.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "hostile"}});
    kubectl
        .run_with_input(&["create", "-f", "-"], &node.to_string())
        .ok();
    let arguments = ["patch", "node", "hostile", "--subresource=status", "-p"];
    kubectl
        .run(&[&arguments[..], &[&condition.to_string()]].concat())
        .ok();

    page.show_agent();
    browser.until_text(".title", SCRIPT);
    browser.press_button("Events");
    browser.until_text(".events", SCRIPT);
    browser.press_button("History");
    browser.until_text(".history", SCRIPT);
    browser.press_button("Changes");
    browser.until_text(".diff", SCRIPT);
    let fits = "return document.documentElement.scrollWidth <= innerWidth;";
    assert_eq!(browser.run(fits, &[]), true, "a long text widens the page");
    page.picture("hostile_text");
    page.go("#/node/hostile");
    browser.until_text(".conditions", SCRIPT);
    page.go(&format!("#/ds/{}/{}", percent(SCRIPT), percent(SCRIPT)));
    browser.until_text("h1", SCRIPT);
    // No DaemonSet can have such a name.
    browser.until_text(".banner", "there is no /api/daemonsets/");
    page.go("#/");
    browser.until_text(".said", SCRIPT);
    let owned =
        "return [window.owned ?? null, document.querySelectorAll('main img, main script').length];";
    assert_eq!(browser.run(owned, &[]), json!([null, 0]));
    page.check_console();
}

#[test]
fn hostile_text_of_pods_is_text_where_nodes_are_explained() {
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let Some(page) = Page::open(3, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    let mut set: Value = serde_json::from_str(&page.rollout.manifest("2")).unwrap();
    // The answer of `kennel why` has all of it.
    let image = format!("example.com/hostile:{SCRIPT}{}", "x".repeat(HUGE));
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    let kubectl = &page.rollout.cluster.kubectl;
    kubectl
        .run_with_input(&["apply", "-f", "-"], &set.to_string())
        .ok();
    page.show_agent();
    page.wait_for_count("failed", 1);
    point_at_cell(browser, "--state-failed", SCRIPT);
    let inside = "const box = document.querySelector('.tooltip').getBoundingClientRect();
        return box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;";
    assert_eq!(browser.run(inside, &[]), true, "the tooltip is too large");
    browser.click(".node-links button");
    browser.until_text(".node-panel", SCRIPT);
    let fits = "return document.documentElement.scrollWidth <= innerWidth;";
    assert_eq!(browser.run(fits, &[]), true, "a long text widens the page");
    page.picture("hostile_pod");
    browser.press_button("Table");
    browser.until_text(".node-table tbody", "sim-");
    assert_eq!(browser.run(fits, &[]), true, "a long text widens the table");
    let owned =
        "return [window.owned ?? null, document.querySelectorAll('main img, main script').length];";
    assert_eq!(browser.run(owned, &[]), json!([null, 0]));
    page.check_console();
}

fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        write!(encoded, "%{byte:02x}").unwrap();
    }
    encoded
}
