//! A recording as one self-contained file: JSON, an SVG, or a page that shows any moment of it.

mod axis;
mod html;
mod svg;
#[cfg(test)]
mod tests;
mod timeline;

use std::fmt::Write as _;
use std::time::Duration;

use kennel_core::why::human_duration;

pub use html::html;
pub use svg::svg;

/// Text within XML or HTML, quotes included: names and messages come from the cluster.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no other control characters.
            c if c.is_control() && c != '\n' && c != '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// `850ms`, `12.3s`, `4m30s`.
fn millis_text(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => {
            let mut text = String::new();
            let tenths = millis / 100;
            // Writing to a String cannot fail.
            let _ = write!(text, "{}.{}s", tenths / 10, tenths % 10);
            text
        }
        _ => human_duration(Duration::from_millis(millis)),
    }
}

/// The first so many characters.
fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
