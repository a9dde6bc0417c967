//! The picture: what each node ran over time, the phases, and how many nodes were in between.

use std::fmt::Write as _;

use kennel_core::picture::CellState;

use super::timeline::{Timeline, class};
use super::{cut, escape, millis_text};
use crate::record::{PhaseNote, Recording, Source};

const WIDTH: f64 = 860.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 124.0;
/// Height of the title.
const TITLE: f64 = 70.0;
/// Height of the strip that counts the nodes in between.
const STRIP: f64 = 34.0;
/// Failures that are named.
const FAILURES_MAX: usize = 3;
/// Characters of a line of text.
const LINE_MAX: usize = 128;
/// The space that a label of a phase needs.
const LABEL: f64 = 78.0;

/// A picture of its own has its own background, to be readable on light and dark pages.
pub(super) const STYLE: &str = include_str!("picture.css");

/// The recording as an SVG file.
pub fn svg(recording: &Recording) -> String {
    drawing(recording, &format!("<style>\n{STYLE}</style>\n"), 0.0)
}

/// As [`svg`], without the title, in a page that has that and the style sheet.
pub(super) fn untitled(recording: &Recording) -> String {
    drawing(recording, "", TITLE)
}

fn drawing(recording: &Recording, style: &str, from: f64) -> String {
    let longest = recording.nodes.iter().map(String::len).max().unwrap_or(0);
    let left = match recording.nodes.len() {
        // Characters of a monospaced font of 11 pixels.
        0..=40 => 26.0 + 6.7 * f64::from(u8::try_from(longest.min(23)).unwrap_or(23)),
        _ => 76.0,
    };
    let left = left.max(76.0);
    let timeline = Timeline::new(recording, left, WIDTH - RIGHT, TOP);
    let named = recording.failures.len().min(FAILURES_MAX);
    let named = f64::from(u8::try_from(named).unwrap_or(0));
    let rows_end = timeline.bottom();
    let strip_top = rows_end + 16.0;
    let axis_y = strip_top + STRIP;
    let height = axis_y + 38.0 + named * 18.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {from} {WIDTH} {}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n{style}",
        height - from
    );
    let _ = writeln!(
        out,
        "<title>{}</title>\n<rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>",
        escape(&title(recording)),
        WIDTH - 1.0,
        height - 1.0
    );
    head(&mut out, recording, &timeline);
    ticks(&mut out, &timeline, axis_y);
    timeline.draw(&mut out);
    strip(&mut out, recording, &timeline, strip_top);
    phases(&mut out, recording, &timeline, axis_y);
    failures(&mut out, recording, axis_y + 36.0);
    out.push_str("</svg>\n");
    out
}

pub(super) fn title(recording: &Recording) -> String {
    let (namespace, name) = (&recording.namespace, &recording.name);
    match (&recording.stable, &recording.target) {
        (Some(stable), Some(target)) if stable != target => {
            format!("DaemonSet {namespace}/{name}: {stable} → {target}")
        }
        (_, Some(target)) => format!("DaemonSet {namespace}/{name}: {target}"),
        _ => format!("DaemonSet {namespace}/{name}"),
    }
}

/// `12 nodes · stages 1 2s, 50%, 100% · 6 nodes were reached · 26.4s`.
pub(super) fn facts(recording: &Recording) -> String {
    let mut parts = vec![format!("{} nodes", recording.nodes.len())];
    if let Some(policy) = &recording.policy {
        parts.push(format!("stages {policy}"));
    }
    parts.push(format!("{} reached", recording.reached()));
    parts.push(format!("took {}", millis_text(recording.length())));
    if recording.durations.nodes > 0 {
        parts.push(format!(
            "{} a node (median)",
            millis_text(recording.durations.median)
        ));
    }
    if recording.source == Source::Reconstructed {
        parts.push("reconstructed".to_owned());
    }
    parts.join(" · ")
}

fn head(out: &mut String, recording: &Recording, timeline: &Timeline<'_>) {
    let _ = writeln!(
        out,
        "<text class=\"text\" x=\"20\" y=\"28\" font-size=\"15\" font-weight=\"600\">{}</text>\n\
         <text class=\"text\" x=\"20\" y=\"48\">{}</text>\n\
         <text class=\"faint\" x=\"20\" y=\"66\">{}</text>",
        escape(&title(recording)),
        escape(&cut(&recording.message, LINE_MAX)),
        escape(&cut(&facts(recording), LINE_MAX)),
    );
    let mut x = 20.0;
    for state in CellState::ALL {
        let occurs = recording.initial.as_bytes().contains(&state.letter())
            || recording.changes.iter().any(|c| c.letter == state.letter());
        if !occurs {
            continue;
        }
        let (class, name) = (class(state), state.name());
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"78.5\" width=\"14\" height=\"9\" rx=\"2\"/>\
             <text class=\"faint\" x=\"{}\" y=\"87\" font-size=\"11\">{name}</text>",
            x + 19.0
        );
        x += 36.0 + 6.2 * f64::from(u8::try_from(name.len()).unwrap_or(0));
    }
    if timeline.nodes_per_row() > 1 {
        let _ = writeln!(
            out,
            "<text class=\"faint\" x=\"{}\" y=\"87\" font-size=\"11\" text-anchor=\"end\">a row is {} nodes</text>",
            WIDTH - RIGHT,
            timeline.nodes_per_row()
        );
    }
}

fn ticks(out: &mut String, timeline: &Timeline<'_>, bottom: f64) {
    for (at, label) in timeline.axis.ticks() {
        let x = timeline.axis.x(at);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {}V{bottom:.1}\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{label}</text>",
            TOP - 4.0,
            bottom + 16.0
        );
    }
}

/// The number of nodes that are in between or have failed, over time.
fn strip(out: &mut String, recording: &Recording, timeline: &Timeline<'_>, top: f64) {
    let between = |letter: u8| {
        let state = CellState::of_letter(letter);
        matches!(state, Some(CellState::Updating | CellState::Failed))
    };
    let mut letters = recording.initial.as_bytes().to_vec();
    let mut count = letters.iter().filter(|letter| between(**letter)).count();
    let mut steps = vec![(0, count)];
    for change in &recording.changes {
        let before = std::mem::replace(&mut letters[change.node], change.letter);
        count = count + usize::from(between(change.letter)) - usize::from(between(before));
        match steps.last_mut() {
            Some(last) if last.0 == change.at => last.1 = count,
            _ => steps.push((change.at, count)),
        }
    }
    let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let bottom = top + STRIP;
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let height = |count: usize| (STRIP - 8.0) * number(count) / number(most.max(1));
    let mut path = format!("M{:.1} {bottom:.1}", timeline.axis.left);
    for (index, (at, count)) in steps.iter().enumerate() {
        let next = steps
            .get(index + 1)
            .map_or(timeline.axis.length, |next| next.0);
        let y = bottom - height(*count);
        let (from, to) = (timeline.axis.x(*at), timeline.axis.x(next));
        let _ = write!(path, "L{from:.1} {y:.1}L{to:.1} {y:.1}");
    }
    let x = timeline.axis.left - 10.0;
    let _ = writeln!(
        out,
        "<path class=\"strip\" d=\"{path}L{:.1} {bottom:.1}Z\"/>\n\
         <text class=\"faint\" x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">changing</text>\n\
         <text class=\"faint\" x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">(≤ {most})</text>",
        timeline.axis.right,
        bottom - 15.0,
        bottom - 2.0,
    );
}

/// A line where each phase begins, with its name unless that would cover another one.
fn phases(out: &mut String, recording: &Recording, timeline: &Timeline<'_>, bottom: f64) {
    let mut free = [f64::MIN; 2];
    for phase in &recording.phases {
        let x = timeline.axis.x(phase.at);
        let level = free.iter().position(|free| *free <= x);
        let top = level.map_or(
            TOP - 4.0,
            |level| {
                if level == 0 { TOP - 20.0 } else { TOP - 8.0 }
            },
        );
        let _ = write!(
            out,
            "<path class=\"phase\" d=\"M{x:.1} {top:.1}V{bottom:.1}\" stroke-dasharray=\"1 3\"/>"
        );
        if let Some(level) = level {
            free[level] = x + LABEL;
            let end = x + LABEL > WIDTH - RIGHT;
            let (at, anchor) = if end {
                (x - 3.0, "end")
            } else {
                (x + 3.0, "start")
            };
            let _ = write!(
                out,
                "<text class=\"text\" x=\"{at:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"{anchor}\">{}</text>",
                top + 6.0,
                escape(&label(phase))
            );
        }
        out.push('\n');
    }
}

/// What a phase is called.
pub(super) fn label(phase: &PhaseNote) -> String {
    match (phase.phase.as_str(), phase.stage) {
        ("Updating", Some(stage)) => format!("stage {stage}"),
        ("Baking", _) => "bakes".to_owned(),
        ("AwaitingPromotion", _) => "waits for a person".to_owned(),
        ("Paused", _) => "failed, paused".to_owned(),
        ("RollingBack", _) => "failed, goes back".to_owned(),
        ("Held", _) => "held".to_owned(),
        ("Complete", _) => "complete".to_owned(),
        (other, _) => other.to_owned(),
    }
}

fn failures(out: &mut String, recording: &Recording, top: f64) {
    let mut y = top;
    for failure in recording.failures.iter().take(FAILURES_MAX) {
        let at = failure
            .at
            .map_or_else(String::new, |at| format!(" after {}", millis_text(at)));
        let text = format!("{} failed{at}: {}", failure.node, failure.message);
        let _ = writeln!(
            out,
            "<rect class=\"failed\" x=\"20\" y=\"{:.1}\" width=\"9\" height=\"9\" rx=\"2\"/>\
             <text class=\"text\" x=\"36\" y=\"{y:.1}\" font-size=\"11\">{}</text>",
            y - 8.5,
            escape(&cut(&text, LINE_MAX))
        );
        y += 18.0;
    }
}
