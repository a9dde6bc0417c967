//! A cluster of simulated nodes, a dashboard, and a browser that shows its page.

use std::path::{Path, PathBuf};

use kennel_browser::{Browser, Options};
use kennel_testkit::Dashboard;
use serde_json::json;

use crate::rollout::fixture::Fixture as Rollout;
use crate::why::fixture::KENNEL;

/// Three zones of nodes; the version `broken` crashes everywhere, and an image with `hostile` in its name cannot be pulled.
pub(super) const SCENARIO: &str = "
nodes:
- zones: [zone-a, zone-b, zone-c]
pods:
- image: \"*:broken\"
  ready: 1h
  exits: {after: 100ms, code: 1}
- image: \"*hostile*\"
  unpullable: true
";

pub(super) struct Page {
    /// Dropped first: if the test fails, it takes a picture of what the cluster shows.
    pub(super) browser: Browser,
    pub(super) dashboard: Dashboard,
    pub(super) rollout: Rollout,
}

impl Page {
    /// So many nodes in three zones, all of which run version 1 of `agent`, with a policy; and the list of DaemonSets.
    pub(super) fn open(nodes: usize, policy: &[(&str, &str)], flags: &[&str]) -> Option<Self> {
        Self::open_with(nodes, policy, flags, &Options::default())
    }

    /// The same in another window. `None` where there is no browser.
    pub(super) fn open_with(
        nodes: usize,
        policy: &[(&str, &str)],
        flags: &[&str],
        options: &Options,
    ) -> Option<Self> {
        let browser = start(options)?;
        let rollout = Rollout::with(SCENARIO, nodes, policy);
        let kubeconfig = rollout.cluster.kennel.kubeconfig();
        let dashboard = Dashboard::start(KENNEL, &kubeconfig, flags);
        browser.open(dashboard.address());
        browser.until_text("main", "agent");
        Some(Self {
            browser,
            dashboard,
            rollout,
        })
    }

    /// Goes to the DaemonSet `agent` and waits for its picture.
    pub(super) fn show_agent(&self) {
        self.go("#/ds/default/agent");
        self.wait_for_picture();
    }

    /// Goes to an address within the page.
    pub(super) fn go(&self, fragment: &str) {
        let script = "location.hash = arguments[0];";
        self.browser.run(script, &[fragment.into()]);
    }

    pub(super) fn wait_for_picture(&self) {
        let script = "return performance.getEntriesByName('waffle').length > 0
            && document.querySelector('.waffle')?.getAttribute('aria-label') !== null;";
        self.browser.until("the picture", script, &[]);
    }

    /// Waits until the legend counts so many nodes in a state.
    pub(super) fn wait_for_count(&self, state: &str, count: usize) {
        wait_for_count(&self.browser, state, count);
    }

    /// Keeps what the window shows, for people.
    pub(super) fn picture(&self, name: &str) {
        picture(&self.browser, name);
    }

    /// The page has met no error, and the browser has refused nothing.
    pub(super) fn check_console(&self) {
        check_console(&self.browser);
    }
}

/// The page has met no error, and the browser has refused nothing.
pub(super) fn check_console(browser: &Browser) {
    let console = browser.console();
    let bad = console.iter().filter(|line| is_error(line));
    let bad: Vec<&String> = bad.collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Requests that fail are part of some tests, and tests read what is drawn.
fn is_error(line: &str) -> bool {
    let expected = ["Failed to load resource", "net::ERR_", "willReadFrequently"];
    !expected.iter().any(|text| line.contains(text))
}

/// A browser; `None` where it is not installed, which counts as skipped.
pub(super) fn start(options: &Options) -> Option<Browser> {
    if !kennel_browser::is_installed() {
        kennel_test_support::skip("no chromium and chromium-driver");
        return None;
    }
    let failures = pictures().join("failed");
    Some(Browser::start(&Options {
        failures: Some(failures),
        ..options.clone()
    }))
}

/// Where pictures of pages are kept.
fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard")
}

pub(super) fn wait_for_count(browser: &Browser, state: &str, count: usize) {
    let script = "const entries = [...document.querySelectorAll('.legend .entry')];
        const entry = entries.find((e) => e.querySelector('span').textContent === arguments[0]);
        return entry?.querySelector('b').textContent === arguments[1];";
    let what = format!("{count} {state}");
    browser.until(&what, script, &[json!(state), json!(count.to_string())]);
}

pub(super) fn picture(browser: &Browser, name: &str) {
    browser.screenshot(&pictures().join(format!("{name}.png")));
}

/// A tool that a script has put below `.tools`.
pub(super) fn tool(path: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    tools.join(path)
}
