//! The page: the picture, and the nodes at any moment of the recording. It loads nothing, and works without its script except
//! for that moment.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_core::rollout::Outcome;
use kennel_core::why::human_duration;
use sha2::{Digest as _, Sha256};

use super::svg::{STYLE, facts, title, untitled};
use super::{escape, millis_text};
use crate::record::Recording;

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Rows of a table that are shown; the data has all.
const ROWS_MAX: usize = 200;

/// The recording as an HTML file.
pub fn html(recording: &Recording) -> Result<String, serde_json::Error> {
    let style = format!("\n{STYLE}{PAGE_STYLE}");
    let script = format!("\n{SCRIPT}");
    // Within a script element only `<` could end it.
    let data = serde_json::to_string(recording)?.replace('<', "\\u003c");
    let title = escape(&title(recording));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
         script-src 'sha256-{}'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n",
        hash(&style),
        hash(&script),
    );
    header(&mut out, recording, &title);
    moment(&mut out, recording);
    let _ = writeln!(
        out,
        "<section aria-labelledby=\"over-time\">\n<h2 id=\"over-time\">Over time</h2>\n<div class=\"picture\" id=\"picture\">\n{}</div>\n</section>",
        untitled(recording)
    );
    failures(&mut out, recording);
    stages(&mut out, recording);
    durations(&mut out, recording);
    events(&mut out, recording);
    notes(&mut out, recording);
    let _ = write!(
        out,
        "</main>\n<script type=\"application/json\" id=\"recording\">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    );
    Ok(out)
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

fn header(out: &mut String, recording: &Recording, title: &str) {
    let (class, word) = match recording.outcome {
        Outcome::Complete => ("complete", "complete"),
        Outcome::Failed => ("bad", "failed"),
        Outcome::Progressing => ("going", "in progress"),
        Outcome::Waiting => ("going", "waits for a person"),
    };
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<header>\n<h1>{title} <span class=\"verdict {class}\">{word}</span></h1>\n<p>{}</p>\n\
         <p class=\"faint-text\">{}<br>{} to {}</p>\n</header>",
        escape(&recording.message),
        escape(&facts(recording)),
        recording.began,
        recording.ended,
    );
}

/// Filled by the script.
fn moment(out: &mut String, recording: &Recording) {
    let _ = writeln!(
        out,
        "<section id=\"moment\" aria-labelledby=\"nodes\" hidden>\n<h2 id=\"nodes\">The nodes at one moment</h2>\n\
         <div class=\"controls\">\n<button type=\"button\" id=\"play\">Play</button>\n\
         <input type=\"range\" id=\"time\" min=\"0\" max=\"{0}\" value=\"{0}\" step=\"1\" aria-label=\"Time\">\n\
         <output id=\"clock\" for=\"time\"></output>\n</div>\n<ul class=\"legend\" id=\"legend\"></ul>\n\
         <canvas id=\"waffle\" role=\"img\" aria-labelledby=\"nodes\" aria-describedby=\"legend\"></canvas>\n<p class=\"faint-text\" id=\"cell\">\
         Point at a cell, or click one, to see which node it is.</p>\n</section>",
        recording.length()
    );
}

fn table(out: &mut String, id: &str, title: &str, head: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let head: Vec<String> = head
        .iter()
        .map(|h| format!("<th scope=\"col\">{h}</th>"))
        .collect();
    let _ = writeln!(
        out,
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>\n<div class=\"scrolls\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>",
        head.concat()
    );
    for row in rows.iter().take(ROWS_MAX) {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| format!("<td>{}</td>", escape(cell)))
            .collect();
        let _ = writeln!(out, "<tr>{}</tr>", cells.concat());
    }
    let _ = writeln!(out, "</tbody>\n</table></div>");
    let more = rows.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        let _ = writeln!(out, "<p class=\"faint-text\">and {more} more</p>");
    }
    let _ = writeln!(out, "</section>");
}

fn failures(out: &mut String, recording: &Recording) {
    let rows: Vec<Vec<String>> = recording
        .failures
        .iter()
        .map(|failure| {
            let time = |at: Option<u64>| at.map_or_else(|| "-".to_owned(), millis_text);
            vec![
                failure.node.clone(),
                failure.message.clone(),
                time(failure.at),
                time(failure.until),
            ]
        })
        .collect();
    let head = ["Node", "Why", "Failed after", "Until"];
    table(out, "failures", "Who failed and why", &head, &rows);
}

fn stages(out: &mut String, recording: &Recording) {
    let rows: Vec<Vec<String>> = recording
        .stages
        .iter()
        .map(|stage| {
            let took = stage.took_seconds.map(std::time::Duration::from_secs);
            vec![
                stage.stage.to_string(),
                stage.began.to_string(),
                took.map_or_else(|| "-".to_owned(), human_duration),
            ]
        })
        .collect();
    table(out, "stages", "Stages", &["Stage", "Began", "Took"], &rows);
}

fn durations(out: &mut String, recording: &Recording) {
    let durations = recording.durations;
    if durations.nodes == 0 {
        return;
    }
    let row = vec![
        durations.nodes.to_string(),
        millis_text(durations.shortest),
        millis_text(durations.median),
        millis_text(durations.p95),
        millis_text(durations.longest),
    ];
    let head = [
        "Nodes updated",
        "Shortest",
        "Median",
        "95th percentile",
        "Longest",
    ];
    table(out, "durations", "How long a node took", &head, &[row]);
}

fn events(out: &mut String, recording: &Recording) {
    let rows: Vec<Vec<String>> = recording
        .events
        .iter()
        .map(|event| {
            vec![
                event.time.to_string(),
                event.reason.clone(),
                event.message.clone(),
            ]
        })
        .collect();
    table(
        out,
        "events",
        "Events",
        &["Time", "Reason", "Message"],
        &rows,
    );
}

fn notes(out: &mut String, recording: &Recording) {
    for note in &recording.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
}
