//! What is easily confused: rows of nodes that join, events with the same words, cells that touch, labels that are not offered.

use kennel_browser::Browser;
use serde_json::json;

use super::fixture::Page;
use super::views::texts;

/// Groups by a label of the list.
fn group_by(browser: &Browser, label: &str) {
    let choose = "const select = document.querySelector('.toolbar select');
        select.value = arguments[0];
        select.dispatchEvent(new Event('change'));";
    browser.run(choose, &[json!(label)]);
}

#[test]
fn rows_are_those_of_their_nodes_after_another_picture() {
    let Some(page) = Page::open(6, &[("stages", "1 manual, 100%")], &[]) else {
        return;
    };
    let browser = &page.browser;
    page.show_agent();
    page.wait_for_count("new", 6);
    browser.press_button("Table");
    browser.until_text(".node-table .pages", "6 nodes");
    // It joins as the last one, and the next picture has it in the middle. Nothing makes its pod ready.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "sim-1-late"}});
    let kubectl = &page.rollout.cluster.kubectl;
    kubectl
        .run_with_input(&["create", "-f", "-"], &node.to_string())
        .ok();
    browser.until_text(".node-table .pages", "7 nodes");
    group_by(browser, "topology.kubernetes.io/zone");
    browser.until_text(".node-table thead", "topology.kubernetes.io/zone");
    let states = |browser: &Browser| -> Vec<String> {
        let rows = texts(browser, ".node-table tbody tr");
        let two = |row: &String| {
            row.split('\t')
                .take(2)
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ")
        };
        rows.iter().map(two).collect()
    };
    let six = (1..=6).map(|node| format!("sim-{node} new"));
    let expected: Vec<String> = ["sim-1-late down".to_owned()]
        .into_iter()
        .chain(six)
        .collect();
    assert_eq!(states(browser), expected);
    // A rollout changes states, not names.
    page.rollout.apply("2");
    browser.until_text(".stages", "Stage 1");
    group_by(browser, "@stage");
    browser.until_text(".node-table thead", "Stage");
    let mut names: Vec<String> = states(browser);
    names.sort();
    let named: Vec<&str> = names
        .iter()
        .filter_map(|row| row.split(' ').next())
        .collect();
    let all = [
        "sim-1",
        "sim-1-late",
        "sim-2",
        "sim-3",
        "sim-4",
        "sim-5",
        "sim-6",
    ];
    assert_eq!(named, all);
    let press = "const rows = [...document.querySelectorAll('.node-table tbody button')];
        rows.find((e) => e.textContent === 'sim-2').click();";
    browser.run(press, &[]);
    browser.until_text(".node-panel h2", "sim-2");
    page.check_console();
}

#[test]
fn a_label_that_is_not_offered_groups_nodes() {
    let Some(page) = Page::open(3, &[], &[]) else {
        return;
    };
    let browser = &page.browser;
    page.show_agent();
    page.wait_for_count("new", 3);
    let offered = "return [...document.querySelectorAll('.toolbar option')].map((e) => e.value);";
    let label = json!("kubernetes.io/hostname");
    let before = browser.run(offered, &[]);
    assert!(!before.as_array().unwrap().contains(&label), "{before}");
    group_by(browser, "@other");
    browser.until(
        "the field",
        "return document.activeElement?.matches('.toolbar input[type=text]') === true;",
        &[],
    );
    browser.press("kubernetes.io/hostname");
    browser.press(kennel_browser::key::ENTER);
    browser.until_text(".waffle-headers", "sim-3");
    assert_eq!(
        texts(browser, ".waffle-header b"),
        ["sim-1", "sim-2", "sim-3"]
    );
    assert!(browser.address().contains("group=kubernetes.io"));
    // A field that is left empty changes nothing.
    group_by(browser, "@other");
    browser.press(kennel_browser::key::ESCAPE);
    let chosen = "return document.querySelector('.toolbar select').value;";
    assert_eq!(browser.run(chosen, &[]), label);
    page.check_console();
}

#[test]
fn events_with_the_same_words_have_a_line_each() {
    let Some(page) = Page::open(1, &[], &[]) else {
        return;
    };
    let browser = &page.browser;
    let kubectl = &page.rollout.cluster.kubectl;
    let owner = kubectl.get(&["ds", "agent"]).unwrap();
    for (name, hour) in [("one", 1), ("two", 2)] {
        let time = format!("2020-01-01T0{hour}:00:00Z");
        let event = json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "default",
                "name": "agent", "uid": owner["metadata"]["uid"]},
            "type": "Warning", "reason": "Same", "message": "same words",
            "firstTimestamp": time, "lastTimestamp": time, "count": hour,
            "source": {"component": "test"}});
        kubectl
            .run_with_input(&["create", "-f", "-"], &event.to_string())
            .ok();
    }
    page.show_agent();
    browser.press_button("Events");
    let both = "const lines = [...document.querySelectorAll('.events li')];
        const same = lines.filter((e) => e.innerText.includes('same words'));
        return same.length === 2 && same.map((e) => [e.querySelector('.faint').textContent, e.querySelector('time').title]);";
    let both = browser.until("both events", both, &[]);
    let text = |line: usize, part: usize| both[line][part].as_str().unwrap().to_owned();
    // The newest first: the number of times tells which is which.
    assert_eq!((text(0, 0), text(1, 0)), ("× 2".to_owned(), String::new()));
    assert_ne!(text(0, 1), text(1, 1), "each has its own time: {both}");
    page.check_console();
}

/// Draws cells below eight pixels again and again, and compares them with all of them drawn at once.
const COMPARE: &str = "const [{ Painter }, { Layout }] = await Promise.all([import('./painter.js'), import('./layout.js')]);
    const count = 60;
    const members = [[...Array(count).keys()]];
    const layout = new Layout({ members, order: [0], headers: false, width: 70, height: 10, scale: 1, capacity: count });
    let seed = 1;
    const random = (below) => {
        seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
        return Math.floor((seed / 2_147_483_648) * below);
    };
    const state = new Uint8Array(count).map(() => random(7));
    const paint = () => {
        const canvas = document.body.appendChild(document.createElement('canvas'));
        const painter = new Painter(canvas);
        painter.prepare(layout);
        painter.all({ state }, () => false);
        return painter;
    };
    const painter = paint();
    const pixels = ({ canvas }) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.join();
    for (let round = 0; round < 50; round += 1) {
        const changed = [random(count), random(count), random(count)];
        changed.forEach((index) => (state[index] = random(3) === 0 ? 2 : random(7)));
        painter.some({ state }, new Set(changed), () => false);
        const whole = paint();
        const equal = pixels(painter) === pixels(whole);
        whole.canvas.remove();
        if (!equal) {
            return `round ${round}`;
        }
    }
    painter.canvas.remove();
    return [layout.cell, layout.pitch];";

#[test]
fn cells_that_change_leave_those_beside_them_as_they_are() {
    let Some(page) = Page::open(1, &[], &[]) else {
        return;
    };
    let browser = &page.browser;
    page.show_agent();
    // Failed cells fill the gaps around them at this size.
    assert_eq!(browser.run(COMPARE, &[]), json!([6, 7]));

    // What changes the room of the picture, but not the size of its cells, draws nothing again.
    page.wait_for_count("new", 1);
    let drawn = "for (let frames = 0; frames < 4; frames += 1) {
            await new Promise(requestAnimationFrame);
        }
        return performance.getEntriesByName('waffle').length;";
    let before = browser.run(drawn, &[]);
    let higher = "document.querySelector('.title').style.minHeight = `${arguments[0]}px`;";
    browser.run(higher, &[json!(150)]);
    assert_eq!(browser.run(drawn, &[]), before);
    let narrower = "document.querySelector('.left').style.width = '400px';";
    browser.run(narrower, &[]);
    let again = browser.run(drawn, &[]);
    assert!(again.as_u64() > before.as_u64(), "{before} {again}");
    page.check_console();
}
