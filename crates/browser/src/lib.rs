//! A real browser for tests and benchmarks: Debian's Chromium, driven over `WebDriver` by its chromedriver. It knows nothing of
//! Kennel, contains no expectations, and uses no network but the loopback interface. Never shipped.
//!
//! What cannot be done panics with what the browser says, so that a test reads as a story.

mod driver;
mod options;
mod page;
mod processes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use driver::Driver;
pub use options::Options;
pub use page::key;

/// Whether Debian's packages `chromium` and `chromium-driver` are installed.
pub fn is_installed() -> bool {
    [options::CHROMIUM, driver::CHROMEDRIVER]
        .iter()
        .all(|program| Path::new(program).exists())
}

/// One window, with a profile of its own. Dropping it ends the browser.
pub struct Browser {
    driver: Driver,
    session: String,
    failures: Option<PathBuf>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser.
    pub fn start(options: &Options) -> Self {
        let profile = tempfile::TempDir::new().expect("a temporary directory can be made");
        let driver = Driver::start();
        let body = json!({"capabilities": {"alwaysMatch": options.capabilities(profile.path())}});
        let session = driver.call("POST", "/session", Some(&body));
        let session = session["sessionId"].as_str().expect("a session has an id");
        let browser = Self {
            session: session.to_owned(),
            driver,
            failures: options.failures.clone(),
            _profile: profile,
        };
        options.apply(&browser);
        browser
    }

    /// Sends a command of the `DevTools` protocol.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.call("POST", "/goog/cdp/execute", &body)
    }

    /// The main thread of the page that is shown. Chromium keeps further processes for pages, so this keeps the page busy for
    /// a moment and takes the process that was. Nothing if no process runs a page.
    pub fn main_thread(&self) -> Option<MainThread> {
        let all = processes::below(self.driver.pid()).into_iter();
        let pages: Vec<MainThread> = all
            .filter(|pid| processes::is_renderer(*pid))
            .map(MainThread)
            .collect();
        let before: Vec<Option<Duration>> = pages.iter().map(MainThread::time).collect();
        self.run(BUSY, &[]);
        let spent = pages.into_iter().zip(before).filter_map(|(page, before)| {
            let spent = page.time()?.saturating_sub(before?);
            Some((spent, page))
        });
        spent.max_by_key(|(spent, _)| *spent).map(|(_, page)| page)
    }

    /// Sends a `WebDriver` command of this session.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.driver.call(method, &path, Some(body))
    }

    fn get(&self, path: &str) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.driver.call("GET", &path, None)
    }
}

/// Far longer than a page that is not shown works in the same time.
const BUSY: &str = "const end = performance.now() + 300; while (performance.now() < end);";

/// The thread of a page that runs scripts, styles, layout and painting.
#[derive(Debug)]
pub struct MainThread(u32);

impl MainThread {
    /// Its processor time; nothing once the page has ended.
    pub fn time(&self) -> Option<Duration> {
        processes::main_thread_time(self.0)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        if let Some(directory) = self.failures.as_ref().filter(|_| std::thread::panicking()) {
            // Tests have threads of their own, which have their names.
            let test = std::thread::current().name().unwrap_or("test").to_owned();
            let file = directory.join(format!("{}.png", test.replace("::", ".")));
            // The browser may have ended, and this must not hide why the test fails.
            if let Some(image) = self.driver.try_get(&format!("{path}/screenshot")) {
                let _written = page::write_image(&image, &file);
            }
        }
        self.driver.end("DELETE", &path);
    }
}
