//! Every view shows what the cluster has.

use kennel_browser::{Browser, Options};
use serde_json::{Value, json};

use super::fixture::Page;

/// The texts of all elements of a selector.
fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script =
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim());";
    let found = browser.run(script, &[selector.into()]);
    let found = found.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.iter().map(text).collect()
}

#[test]
fn all_daemonsets_are_listed_and_found_by_search() {
    let Some(page) = Page::open(6, &[("stages", "100%")], &[]) else {
        return;
    };
    let browser = &page.browser;
    // Two more: one without nodes, and one that cannot start anywhere.
    let kubectl = &page.rollout.cluster.kubectl;
    let manifest = page.rollout.manifest("1");
    let mut set: Value = serde_json::from_str(&manifest).unwrap();
    set["metadata"] = json!({"name": "nowhere", "namespace": "kube-system"});
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"gpu": "yes"});
    let none = set.to_string();
    set["metadata"] = json!({"name": "trouble", "namespace": "kube-system"});
    set["spec"]["template"]["spec"]["nodeSelector"] = json!(null);
    let image = &mut set["spec"]["template"]["spec"]["containers"][0]["image"];
    *image = json!("example.com/agent:broken");
    for manifest in [none, set.to_string()] {
        kubectl
            .run_with_input(&["apply", "-f", "-"], &manifest)
            .ok();
    }
    browser.until_text(".summary", "3 DaemonSets");
    browser.until_text(".summary", "1 in trouble");
    browser.until(
        "trouble first",
        "const rows = [...document.querySelectorAll('.rows tbody th')];
         return rows.map((e) => e.innerText).join() === arguments[0];",
        &[json!(
            "kube-system / trouble,default / agent,kube-system / nowhere"
        )],
    );
    browser.until_text(".rows tbody tr", "6");
    page.picture("overview");

    browser.click("input[type=search]");
    browser.press("agent");
    browser.until(
        "only what matches",
        "return document.querySelectorAll('.rows tbody tr').length === 1;",
        &[],
    );
    browser.press_button("default / agent");
    page.wait_for_picture();
    assert!(browser.address().ends_with("#/ds/default/agent"));
    browser.until_text("h1", "agent");
    page.check_console();
}

#[test]
fn a_daemonset_is_a_picture_of_its_nodes() {
    let policy = [("stages", "1, 50% manual, 100%")];
    let Some(page) = Page::open(12, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    page.rollout.apply("2");
    page.show_agent();
    page.wait_for_count("new", 6);
    page.wait_for_count("waiting", 6);
    browser.until_text(".title", "waits for promotion");
    // One cell for each node, in the colours of the legend.
    assert_eq!(coloured_cells(browser, "--state-new"), 6);
    // Nodes are grouped by the stages that take them.
    assert_eq!(
        texts(browser, ".waffle-header b"),
        ["Stage 1", "Stage 2", "Stage 3"]
    );
    assert_eq!(texts(browser, ".waffle-header span"), ["1", "5", "6"]);
    let stages = texts(browser, ".stage-step");
    assert_eq!(stages.len(), 3, "{stages:?}");
    assert!(stages[1].contains("waits for a person"), "{stages:?}");
    page.picture("stages");

    // Or by a label.
    let choose = "const select = document.querySelector('.toolbar select');
        select.value = arguments[0];
        select.dispatchEvent(new Event('change'));";
    browser.run(choose, &[json!("topology.kubernetes.io/zone")]);
    browser.until_text(".waffle-headers", "zone-c");
    assert_eq!(
        texts(browser, ".waffle-header b"),
        ["zone-a", "zone-b", "zone-c"]
    );

    browser.press_button("Events");
    browser.until_text(".events", "RolloutStarted");
    browser.press_button("History");
    browser.until_text(".history", "progressing");
    assert_eq!(texts(browser, ".revision-head b"), ["#2", "#1"]);
    browser.press_button("Changes");
    browser.until_text(".diff-line.removed", "image: example.com/agent:1");
    browser.until_text(".diff-line.added", "image: example.com/agent:2");
    page.picture("changes");
    page.check_console();
}

#[test]
fn a_node_says_why_and_what_to_type() {
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let Some(page) = Page::open(6, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    page.rollout.apply("broken");
    page.show_agent();
    page.wait_for_count("failed", 1);
    browser.until_text(".title", "failed, paused");
    browser.until_text(".problems", "1 node");
    browser.click(".node-links button");
    browser.until_text(".node-panel", "exited with code 1");
    let commands = texts(browser, ".node-panel .command code").join("\n");
    assert!(commands.contains("kennel why ds/agent"), "{commands}");
    page.picture("node_of_a_daemonset");
    // The address names the node, so that it can be sent to somebody.
    let address = browser.address();
    browser.press_button("Open the node");
    browser.until_text(".node-view", "Conditions");
    browser.until_text(".node-view", "Ready");
    browser.until_text(".node-view tbody", "agent");
    page.picture("node");
    browser.open(&address);
    browser.until_text(".node-panel", "exited with code 1");
    page.check_console();
}

#[test]
fn the_page_fits_a_phone_and_speaks_chinese() {
    let phone = Options {
        width: 390,
        height: 844,
        language: "zh-CN".to_owned(),
        phone: true,
        dark: true,
        ..Options::default()
    };
    let policy = [("stages", "1, 100% manual")];
    let Some(page) = Page::open_with(8, &policy, &[], &phone) else {
        return;
    };
    let browser = &page.browser;
    let fits = "return document.documentElement.scrollWidth <= innerWidth;";
    browser.until_text(".summary", "1 个 DaemonSet");
    assert_eq!(browser.run(fits, &[]), true, "the list is too wide");
    page.picture("phone_overview");
    page.show_agent();
    page.wait_for_count("新版本", 8);
    assert_eq!(browser.run(fits, &[]), true, "the DaemonSet is too wide");
    assert_eq!(
        browser.run("return document.documentElement.lang;", &[]),
        "zh-CN"
    );
    // A finger on a cell opens the node.
    browser.click(".waffle");
    browser.until_text(".node-panel", "kennel why");
    assert_eq!(browser.run(fits, &[]), true, "the node is too wide");
    page.picture("phone_node");
    // Both languages have the same texts.
    let differences = "const [en, zh] = await Promise.all([import('./en.js'), import('./zh.js')]);
        const kinds = (table) => Object.entries(table.default).map(([key, text]) => `${key} ${Array.isArray(text)}`);
        const [one, other] = [new Set(kinds(en)), new Set(kinds(zh))];
        return [...one.symmetricDifference(other)];";
    assert_eq!(browser.run(differences, &[]), json!([]));
    let choose = "const select = document.querySelector('.bar select');
        select.value = 'en';
        select.dispatchEvent(new Event('change'));";
    browser.run(choose, &[]);
    page.wait_for_count("new", 8);
    page.check_console();
}

/// Counts cells whose corner has the colour of a variable.
fn coloured_cells(browser: &Browser, variable: &str) -> u64 {
    let script = "const canvas = document.querySelector('.waffle canvas');
        const probe = document.body.appendChild(document.createElement('i'));
        probe.style.color = `var(${arguments[0]})`;
        const wanted = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).join();
        probe.remove();
        const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const at = (x, y) => x >= 0 && y >= 0 && data.slice(4 * (y * width + x), 4 * (y * width + x) + 3).join() === wanted
            && data[4 * (y * width + x) + 3] === 255;
        let corners = 0;
        for (let y = 0; y < height; y += 1) {
            for (let x = 0; x < width; x += 1) {
                corners += at(x, y) && !at(x - 1, y) && !at(x, y - 1) ? 1 : 0;
            }
        }
        return corners;";
    browser.run(script, &[variable.into()]).as_u64().unwrap()
}
