//! How a browser is started.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Browser;

/// Of Debian's package `chromium`.
pub(super) const CHROMIUM: &str = "/usr/bin/chromium";

/// What differs from one browser to another.
#[derive(Clone, Debug)]
pub struct Options {
    /// CSS pixels.
    pub width: u32,
    pub height: u32,
    pub dark: bool,
    /// Of a person, such as `zh-CN`.
    pub language: String,
    /// A touch screen with two pixels for each CSS pixel.
    pub phone: bool,
    /// The directory that gets a picture of the window if a test fails.
    pub failures: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            width: 1440,
            height: 900,
            dark: false,
            language: "en".to_owned(),
            phone: false,
            failures: None,
        }
    }
}

impl Options {
    pub(super) fn capabilities(&self, profile: &Path) -> Value {
        let Self {
            width,
            height,
            language,
            ..
        } = self;
        let arguments = [
            "--headless".to_owned(),
            // Tests run as root, in containers.
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            // Nothing leaves this machine.
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--no-proxy-server".to_owned(),
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
                .to_owned(),
            "--force-color-profile=srgb".to_owned(),
            format!("--user-data-dir={}", profile.display()),
            format!("--window-size={width},{height}"),
            format!("--lang={language}"),
        ];
        json!({
            "browserName": "chrome",
            "goog:chromeOptions": {
                "binary": CHROMIUM,
                "args": arguments,
                "prefs": {"intl.accept_languages": language},
            },
            "goog:loggingPrefs": {"browser": "ALL"},
        })
    }

    /// What can be set only once it runs.
    pub(super) fn apply(&self, browser: &Browser) {
        let scale = if self.phone { 2 } else { 1 };
        let metrics = json!({"width": self.width, "height": self.height,
            "deviceScaleFactor": scale, "mobile": self.phone});
        browser.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        if self.phone {
            let touch = json!({"enabled": true});
            browser.devtools("Emulation.setTouchEmulationEnabled", &touch);
        }
        let theme = if self.dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        browser.devtools("Emulation.setEmulatedMedia", &media);
    }
}
