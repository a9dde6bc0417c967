//! The page that `kennel rollout report` writes, opened as a file.

use kennel_browser::{Browser, Options, key};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::accessibility::barriers;
use super::fixture::{SCENARIO, check_console, picture, start};
use crate::rollout::fixture::Fixture as Rollout;
use crate::rollout::report::record;

const POLICY: [(&str, &str); 3] = [
    ("stages", "1, 100%"),
    ("max-restarts", "0"),
    ("on-failure", "rollback"),
];
const NODES: usize = 4;
/// Of a cell, in CSS pixels, where there are few nodes.
const CELL: i64 = 28;

/// Records a release that fails and goes back, as a page.
fn recorded(directory: &TempDir) -> (std::path::PathBuf, Value) {
    let fixture = Rollout::with(SCENARIO, NODES, &POLICY);
    let file = directory.path().join("report.html");
    let mut recorder = record(&fixture, &file, "html");
    fixture.apply("broken");
    assert!(recorder.wait().unwrap().success());
    let page = std::fs::read_to_string(&file).unwrap();
    let data = page.split("id=\"recording\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    (file, serde_json::from_str(data).unwrap())
}

/// What the legend counts, such as `failed 1`.
fn legend(browser: &Browser) -> Vec<String> {
    let script =
        "return [...document.querySelectorAll('#legend li')].map((e) => e.innerText.trim());";
    let found = browser.run(script, &[]);
    let found = found.as_array().unwrap().iter();
    found
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn seek(browser: &Browser, at: u64) {
    let script = "const slider = document.getElementById('time');
        slider.value = arguments[0];
        slider.dispatchEvent(new Event('input'));";
    browser.run(script, &[json!(at)]);
}

/// Whether the middle of a node's cell is painted.
fn is_painted(browser: &Browser, node: i64) -> bool {
    let script = "const canvas = document.getElementById('waffle');
        const [size, node] = arguments;
        const at = (node + 0.5) * size * devicePixelRatio;
        const middle = (size / 2) * devicePixelRatio;
        const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, at, middle, 1, 1, 0, 0, 1, 1);
        return copy.getImageData(0, 0, 1, 1).data[3] > 0;";
    browser.run(script, &[json!(CELL), json!(node)]) == true
}

#[test]
fn a_report_shows_any_moment_and_who_failed() {
    let Some(browser) = start(&Options::default()) else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let (file, data) = recorded(&directory);
    browser.open(&format!("file://{}", file.display()));
    browser.until_text("h1", "agent");
    browser.until_text("#failures + .scrolls", "exited with code 1");
    // At the end all nodes are back on version 1.
    let nodes = i64::try_from(NODES).unwrap();
    assert!(legend(&browser).contains(&format!("old {NODES}")));
    assert!((0..nodes).all(|node| is_painted(&browser, node)));
    assert!(!is_painted(&browser, nodes), "there is no such node");

    // In the moment of the failure one has failed, which says why.
    let failure = &data["failures"][0];
    seek(&browser, failure["at"].as_u64().unwrap());
    let shown = legend(&browser);
    assert!(
        shown.contains(&"failed 1".to_owned()),
        "{shown:?} at {failure}: {}",
        data["changes"]
    );
    let failed = data["nodes"].as_array().unwrap().iter();
    let failed = failed.clone().position(|node| *node == failure["node"]);
    let failed = i64::try_from(failed.unwrap()).unwrap();
    let place = "const box = document.getElementById('waffle').getBoundingClientRect();
        return [Math.round(box.left), Math.round(box.top)];";
    let place = browser.run(place, &[]);
    let [left, top] = [0, 1].map(|at| place[at].as_i64().unwrap());
    browser.point_at(left + failed * CELL + CELL / 2, top + CELL / 2);
    browser.until_text("#cell", failure["node"].as_str().unwrap());
    browser.until_text("#cell", "exited with code 1");
    picture(&browser, "report");

    // By keyboard, and played.
    browser.run("document.getElementById('time').focus();", &[]);
    browser.press(key::HOME);
    browser.until_text("#clock", "0.0 s");
    // At the beginning nothing has failed.
    let shown = legend(&browser);
    assert!(shown.contains(&"failed 0".to_owned()), "{shown:?}");
    browser.press_button("Play");
    let moves = "return Number(document.getElementById('time').value) > 0;";
    browser.until("a later moment", moves, &[]);
    browser.press_button("Pause");
    browser.until_text("#play", "Play");
    browser.press(key::END);
    check_console(&browser);
}

#[test]
fn a_report_has_no_barriers_in_light_and_dark() {
    let Some(browser) = start(&Options::default()) else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let (file, _) = recorded(&directory);
    let address = format!("file://{}", file.display());
    let dark = start(&Options {
        dark: true,
        ..Options::default()
    });
    for (name, browser) in [("light", browser), ("dark", dark.unwrap())] {
        browser.open(&address);
        browser.until_text("#clock", " s");
        let found = barriers(&browser);
        assert!(found.is_empty(), "{name}: {found:#?}");
        picture(&browser, &format!("report_{name}"));
        check_console(&browser);
    }
}
