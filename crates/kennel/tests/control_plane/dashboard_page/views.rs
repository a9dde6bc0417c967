//! Every view shows what the cluster has.

use kennel_browser::{Browser, Options};
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::accessibility::barriers;
use super::fixture::Page;

/// The texts of all elements of a selector.
pub(super) fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script =
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim());";
    let found = browser.run(script, &[selector.into()]);
    let found = found.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.iter().map(text).collect()
}

#[test]
fn all_daemonsets_are_listed_and_found_by_search() {
    let policy = [("stages", "1 manual, 100%")];
    let Some(page) = Page::open(6, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    // Two more, without a policy: one without nodes, and one that cannot start anywhere.
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
    rows_have_stages_and_outcomes(&page);
    namespaces_are_chosen(browser);

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

/// A release in stages that waits for a person: its stage, its outcome, and why.
fn rows_have_stages_and_outcomes(page: &Page) {
    let browser = &page.browser;
    page.rollout.apply("2");
    let row = |name: &str| {
        let script = "const rows = [...document.querySelectorAll('.rows tbody tr')];
            const row = rows.find((e) => e.querySelector('th').innerText === arguments[0]);
            return ['.stage', '.outcome', '.message'].map((part) => row.querySelector(part).innerText);";
        browser.run(script, &[json!(name)])
    };
    browser.until_text(".rows", "waits for promotion");
    let agent = row("default / agent");
    assert_eq!(
        (&agent[0], &agent[1]),
        (&json!("1 / 2"), &json!("waits for promotion"))
    );
    assert!(
        agent[2].as_str().unwrap().contains("stage 1 of 2"),
        "{agent}"
    );
    let nowhere = row("kube-system / nowhere");
    assert_eq!(
        (&nowhere[0], &nowhere[1]),
        (&json!("–"), &json!("complete"))
    );
    page.picture("overview");
}

fn namespaces_are_chosen(browser: &Browser) {
    let choose = "const select = document.querySelector('.overview select');
        select.value = arguments[0];
        select.dispatchEvent(new Event('change'));";
    for (namespace, expected) in [
        ("kube-system", "kube-system / trouble,kube-system / nowhere"),
        ("default", "default / agent"),
    ] {
        browser.run(choose, &[json!(namespace)]);
        browser.until(
            "only the DaemonSets of the namespace",
            "const rows = [...document.querySelectorAll('.rows tbody th')];
             return rows.map((e) => e.innerText).join() === arguments[0];",
            &[json!(expected)],
        );
    }
    browser.run(choose, &[json!("")]);
    browser.until(
        "all DaemonSets",
        "return document.querySelectorAll('.rows tbody tr').length === 3;",
        &[],
    );
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
fn pointing_at_a_node_says_why() {
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let Some(page) = Page::open(6, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    page.rollout.apply("broken");
    page.show_agent();
    page.wait_for_count("failed", 1);
    browser.until_text(".title", "failed, paused");
    let shown = "return !document.querySelector('.tooltip').hidden;";
    assert_eq!(browser.run(shown, &[]), false);
    point_at_cell(browser, "--state-failed", "failed");
    // And after a moment what `kennel why` says.
    point_at_cell(browser, "--state-failed", "exited with code 1");
    page.picture("tooltip");
    browser.point_at(1, 1);
    let hidden = "return document.querySelector('.tooltip').hidden;";
    browser.until("no tooltip", hidden, &[]);
    page.check_console();
}

#[test]
fn the_table_has_what_the_picture_shows() {
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let Some(page) = Page::open(130, &policy, &[]) else {
        return;
    };
    let browser = &page.browser;
    page.show_agent();
    page.wait_for_count("new", 130);
    // What is said to screen readers from here on.
    let record = "window.said = [];
        const announce = document.getElementById('announce');
        new MutationObserver(() => window.said.push(announce.textContent))
            .observe(announce, {childList: true, characterData: true, subtree: true});";
    browser.run(record, &[]);
    page.rollout.apply("broken");
    page.wait_for_count("failed", 1);
    browser.press_button("Table");
    let rows = || texts(browser, ".node-table tbody tr");
    browser.until_text(".node-table .pages", "1 to 100 of 130 nodes");
    browser.until_text(".node-table tbody tr", "failed");
    browser.until_text(".node-table tbody tr", "Stage 1");
    let first = rows();
    assert_eq!(first.len(), 100);
    // The node that has failed, why, and its stage; then the others as people count.
    let failed: Vec<&str> = first[0].split('\t').map(str::trim).collect();
    assert!(
        failed[0].starts_with("sim-") && failed[1] == "failed",
        "{failed:?}"
    );
    assert!(failed[2].contains("restarted"), "{failed:?}");
    assert_eq!(failed[3], "Stage 1");
    let numbers = |rows: &[String]| -> Vec<u32> {
        let name = |row: &String| row.split('\t').next().unwrap().trim().to_owned();
        let number = |row| name(row).strip_prefix("sim-").unwrap().parse().unwrap();
        rows.iter().map(number).collect()
    };
    assert!(numbers(&first[1..]).is_sorted(), "{first:?}");
    browser.press_button("Next");
    browser.until_text(".node-table .pages", "101 to 130 of 130 nodes");
    let last = rows();
    let mut all = [numbers(&first), numbers(&last)].concat();
    assert_eq!((last.len(), numbers(&last).last()), (30, Some(&130)));
    all.sort_unstable();
    assert_eq!(all, (1..=130).collect::<Vec<u32>>());

    // The failure is said, with how many nodes are in which state.
    let said = browser.until(
        "an announcement of the failure",
        "return window.said.find((text) => text.includes('failed and paused')) ?? null;",
        &[],
    );
    let said = said.as_str().unwrap();
    assert!(
        said.contains("129 waiting") && said.contains("1 failed"),
        "{said}"
    );
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
    // A phone has no column of stages, but the outcome.
    browser.until_text(".rows .outcome", "完成");
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
    let found = barriers(browser);
    assert!(found.is_empty(), "on a phone, in Chinese: {found:#?}");
    // What the server says of the rollout, too.
    browser.until_text(".title .message", "是稳定版本");
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
    // The list has the stage and the outcome of a release, too.
    page.rollout.apply("2");
    page.go("#/");
    browser.until_text(".rows .outcome", "waits for promotion");
    let stage = texts(browser, ".rows .stage").join("\n");
    assert!(stage.contains("Stage 2 / 2"), "{stage:?}");
    assert_eq!(browser.run(fits, &[]), true, "the list is too wide");
    page.picture("phone_rollout");
    page.check_console();
}

/// Counts cells whose corner has the colour of a variable.
fn coloured_cells(browser: &Browser, variable: &str) -> usize {
    corners(browser, variable).len()
}

/// Points at the first cell that has the colour of a variable until the tooltip says a text. Cells move while what is above them
/// appears; the tooltip is hidden then, until the mouse moves again.
pub(super) fn point_at_cell(browser: &Browser, variable: &str, text: &str) {
    let says = "const tooltip = document.querySelector('.tooltip');
        const end = performance.now() + 5_000;
        while (!tooltip.hidden && performance.now() < end) {
            if (tooltip.innerText.includes(arguments[0])) {
                return true;
            }
            await new Promise((done) => setTimeout(done, 50));
        }
        return false;";
    eventually(Deadline::seconds(90), || {
        // The cross of a cell that has failed may look like further corners.
        let corners = corners(browser, variable);
        let (x, y) = corners.first().ok_or("no such cell".to_owned())?;
        browser.point_at(1, 1);
        browser.point_at(x + 3, y + 3);
        let said = browser.run(says, &[json!(text)]) == true;
        said.then_some(())
            .ok_or_else(|| format!("{corners:?}: {:?}", browser.text(".tooltip")))
    });
}

/// The corners of the cells that have the colour of a variable, in CSS pixels of the window.
fn corners(browser: &Browser, variable: &str) -> Vec<(i64, i64)> {
    let script = "const canvas = document.querySelector('.waffle canvas');
        const probe = document.body.appendChild(document.createElement('i'));
        probe.style.color = `var(${arguments[0]})`;
        const wanted = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).join();
        probe.remove();
        const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const at = (x, y) => x >= 0 && y >= 0 && data.slice(4 * (y * width + x), 4 * (y * width + x) + 3).join() === wanted
            && data[4 * (y * width + x) + 3] === 255;
        const box = canvas.getBoundingClientRect();
        const corners = [];
        for (let y = 0; y < height; y += 1) {
            for (let x = 0; x < width; x += 1) {
                if (at(x, y) && !at(x - 1, y) && !at(x, y - 1)) {
                    corners.push([Math.round(box.left + x / devicePixelRatio), Math.round(box.top + y / devicePixelRatio)]);
                }
            }
        }
        return corners;";
    let corners = browser.run(script, &[variable.into()]);
    let corners = corners.as_array().unwrap().iter();
    let number = |value: &Value| value.as_i64().unwrap();
    corners.map(|at| (number(&at[0]), number(&at[1]))).collect()
}
