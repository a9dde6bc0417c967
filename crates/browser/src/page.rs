//! What a person does with a page, and what they see.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Browser;

/// By then a page must show what it is asked for, also while other tests use the processor.
const DEADLINE: Duration = Duration::from_secs(90);
const POLL_EVERY: Duration = Duration::from_millis(100);
/// A script that takes longer than half a minute is ended by the driver.
const COMMAND_MAX: Duration = Duration::from_secs(20);
/// So much of a page's text is shown when a test fails.
const SHOWN_CHARS: usize = 3_000;

/// The member of an element reference in JSON, by the `WebDriver` standard.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys that are not characters, by the `WebDriver` standard.
pub mod key {
    pub const TAB: &str = "\u{e004}";
    pub const ENTER: &str = "\u{e007}";
    pub const ESCAPE: &str = "\u{e00c}";
    pub const END: &str = "\u{e010}";
    pub const HOME: &str = "\u{e011}";
    pub const LEFT: &str = "\u{e012}";
    pub const RIGHT: &str = "\u{e014}";
    pub const DOWN: &str = "\u{e015}";
}

/// Writes a screenshot as the driver has it.
pub(super) fn write_image(image: &Value, path: &Path) -> io::Result<()> {
    let image = STANDARD.decode(image.as_str().unwrap_or_default());
    let image = image.map_err(io::Error::other)?;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(path, image)
}

impl Browser {
    /// Goes to an address.
    pub fn open(&self, url: &str) {
        self.call("POST", "/url", &json!({"url": url}));
    }

    /// The present address.
    pub fn address(&self) -> String {
        self.get("/url").as_str().unwrap_or_default().to_owned()
    }

    /// The title of the page.
    pub fn title(&self) -> String {
        self.get("/title").as_str().unwrap_or_default().to_owned()
    }

    /// Runs a function's body in the page; `arguments` are the values given. Promises are awaited.
    pub fn run(&self, script: &str, arguments: &[Value]) -> Value {
        let body = json!({"script": script, "args": arguments});
        self.call("POST", "/execute/sync", &body)
    }

    /// Runs it until it returns something that is true, and returns that.
    ///
    /// # Panics
    /// If that takes too long, with `what` was awaited and the text of the page.
    pub fn until(&self, what: &str, script: &str, arguments: &[Value]) -> Value {
        self.until_within(DEADLINE, what, script, arguments)
    }

    /// The same, for what may take longer or must be faster.
    ///
    /// # Panics
    /// As [`until`](Self::until).
    pub fn until_within(
        &self,
        limit: Duration,
        what: &str,
        script: &str,
        arguments: &[Value],
    ) -> Value {
        let begin = Instant::now();
        loop {
            let found = self.run(script, arguments);
            let is_true = !matches!(&found, Value::Null | Value::Bool(false))
                && found != json!(0)
                && found != json!("");
            if is_true {
                return found;
            }
            if begin.elapsed() > limit {
                let text: String = self.text("body").chars().take(SHOWN_CHARS).collect();
                let console = self.console().join("\n");
                panic!("not in time: {what}\nthe page:\n{text}\nits console:\n{console}");
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// As [`until_within`](Self::until_within), but the page itself looks: a command for each look would cost the page some
    /// of the time that a benchmark measures.
    ///
    /// # Panics
    /// As [`until`](Self::until).
    pub fn until_seen_by_page(&self, limit: Duration, what: &str, script: &str) -> Value {
        let looks = format!(
            "const look = () => {{ {script} }};
            const end = performance.now() + {};
            for (;;) {{
                const found = look();
                if (found || performance.now() > end) {{
                    return found;
                }}
                await new Promise((done) => setTimeout(done, {}));
            }}",
            COMMAND_MAX.as_millis(),
            POLL_EVERY.as_millis()
        );
        self.until_within(limit, what, &looks, &[])
    }

    /// Waits until the text of an element contains a text.
    pub fn until_text(&self, selector: &str, text: &str) {
        let script = "const e = document.querySelector(arguments[0]);
            return e !== null && e.innerText.includes(arguments[1]);";
        let what = format!("{text:?} in {selector}");
        self.until(&what, script, &[selector.into(), text.into()]);
    }

    /// The text of an element as it is shown; empty if it is not there.
    pub fn text(&self, selector: &str) -> String {
        let script = "return document.querySelector(arguments[0])?.innerText ?? '';";
        let found = self.run(script, &[selector.into()]);
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks on the first element of a selector once it is there.
    pub fn click(&self, selector: &str) {
        let script = "return document.querySelector(arguments[0]);";
        self.click_on(&self.until(selector, script, &[selector.into()]));
    }

    /// Clicks on the first visible button, link or tab with this text once it is there.
    pub fn press_button(&self, text: &str) {
        let script = "const all = document.querySelectorAll('button, a, summary');
            const visible = (e) => e.getClientRects().length > 0 && !e.closest('[inert]');
            const open = document.querySelector('dialog[open]');
            const inside = (e) => open === null || open.contains(e);
            const label = (e) => e.getAttribute('aria-label') ?? e.innerText.trim();
            const named = (e) => label(e) === arguments[0] || e.innerText.trim() === arguments[0];
            return [...all].find((e) => visible(e) && inside(e) && named(e)) ?? null;";
        let what = format!("a button {text:?}");
        self.click_on(&self.until(&what, script, &[text.into()]));
    }

    /// Types into the element that has the focus. The constants of [`key`] are keys.
    pub fn press(&self, keys: &str) {
        let mut strokes = Vec::new();
        for character in keys.chars() {
            for kind in ["keyDown", "keyUp"] {
                strokes.push(json!({"type": kind, "value": character}));
            }
        }
        let body = json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]});
        self.call("POST", "/actions", &body);
    }

    /// Moves the mouse to a point of the window.
    pub fn point_at(&self, x: i64, y: i64) {
        let step = json!({"type": "pointerMove", "duration": 0, "x": x, "y": y});
        let body = json!({"actions": [{"type": "pointer", "id": "mouse", "actions": [step]}]});
        self.call("POST", "/actions", &body);
    }

    /// What the page has written to the console since the last call, errors of the browser included.
    pub fn console(&self) -> Vec<String> {
        let log = self.call("POST", "/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().into_iter().flatten();
        let text = |entry: &Value| format!("{} {}", entry["level"], entry["message"]);
        entries.map(text).collect()
    }

    /// Writes what the window shows to a PNG.
    pub fn screenshot(&self, path: &Path) {
        let written = write_image(&self.get("/screenshot"), path);
        written.expect("the screenshot can be written");
    }

    fn click_on(&self, element: &Value) {
        let id = element[ELEMENT].as_str().expect("it is an element");
        self.call("POST", &format!("/element/{id}/click"), &json!({}));
    }
}
