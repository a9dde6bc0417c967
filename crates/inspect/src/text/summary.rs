//! The answer for all nodes: problems first, nodes in the same state grouped.

use std::collections::BTreeMap;
use std::time::Duration;

use kennel_core::why::{Answer, Cause, NodeAnswer, Note, Snapshot, Verdict, human_duration};

use super::log;
use crate::colour::Colours;

/// Nodes named per group without --all.
const NAMED_MAX: usize = 8;
/// Groups shown per verdict without --all.
const GROUPS_MAX: usize = 12;
/// Maximum length of a line of names.
const WIDTH: usize = 96;

const PROBLEMS: [Verdict; 3] = [Verdict::Missing, Verdict::Unknown, Verdict::Lingers];
const OTHERS: [Verdict; 2] = [Verdict::Excluded, Verdict::Runs];

pub fn text(snapshot: &Snapshot, answer: &Answer, all: bool, colours: Colours) -> String {
    let verdicts = [&PROBLEMS[..], &OTHERS].concat();
    sections(snapshot, answer, &verdicts, all, colours)
}

/// Only nodes with problems. If there are none, the problem is with those that are not eligible.
pub fn problems(snapshot: &Snapshot, answer: &Answer, colours: Colours) -> String {
    let has_problem = answer.nodes.iter().any(|node| !node.ok());
    let verdicts = if has_problem { &PROBLEMS[..] } else { &OTHERS };
    sections(snapshot, answer, verdicts, false, colours)
}

fn sections(
    snapshot: &Snapshot,
    answer: &Answer,
    verdicts: &[Verdict],
    all: bool,
    colours: Colours,
) -> String {
    let mut lines = vec![brief(answer, colours).trim_end().to_owned()];
    for &verdict in verdicts {
        lines.extend(section(snapshot, answer, verdict, all, colours));
    }
    lines.join("\n") + "\n"
}

/// Without nodes: the heading and the notes.
pub fn brief(answer: &Answer, colours: Colours) -> String {
    let mut lines = vec![heading(answer, colours)];
    lines.extend(answer.notes.iter().map(|note| note_line(note, colours)));
    lines.join("\n") + "\n"
}

fn note_line(note: &Note, colours: Colours) -> String {
    let label = if is_warning(note) {
        colours.yellow("Warning:")
    } else {
        "Note:".to_owned()
    };
    let message = note.message.trim_end_matches('.');
    let end = if message.ends_with('?') { "" } else { "." };
    format!("{label} {message}{end}")
}

pub(super) fn is_warning(note: &Note) -> bool {
    note.code == "typo"
}

/// All nodes with one verdict.
fn section(
    snapshot: &Snapshot,
    answer: &Answer,
    verdict: Verdict,
    all: bool,
    colours: Colours,
) -> Vec<String> {
    let groups = groups(answer.nodes.iter().filter(|node| node.verdict == verdict));
    if groups.is_empty() {
        return Vec::new();
    }
    let count = groups.iter().map(Vec::len).sum();
    let title = format!("{}: {}", title(verdict, colours), nodes_text(count));
    let mut lines = vec![String::new(), title];
    let shown = if all { groups.len() } else { GROUPS_MAX };
    for group in groups.iter().take(shown) {
        lines.extend(group_lines(snapshot, group, all, colours));
    }
    if let Some(rest) = groups.get(shown..).filter(|rest| !rest.is_empty()) {
        let nodes = nodes_text(rest.iter().map(Vec::len).sum());
        lines.push(colours.dim(&format!(
            "  and {nodes} for other causes (--all shows them)"
        )));
    }
    lines
}

fn heading(answer: &Answer, colours: Colours) -> String {
    let counts = &answer.counts;
    let name = colours.bold(&format!("{}/{}", answer.namespace, answer.name));
    let running = answer.nodes.iter();
    let running = running.filter(|node| node.verdict == Verdict::Runs).count();
    let wanted = running + counts.missing + counts.unknown;
    let what = match (wanted, running) {
        (0, _) => "no node should run it".to_owned(),
        (1, 0) => "the one node that should run it does not".to_owned(),
        (1, _) => "the one node that should run it does".to_owned(),
        (wanted, running) if wanted == running => {
            format!("all {} that should run it do", nodes_text(wanted))
        }
        (wanted, 0) => format!("none of the {} that should run it does", nodes_text(wanted)),
        (wanted, running) => of_nodes(wanted, running),
    };
    let what = match counts.unknown {
        0 => what,
        unknown => {
            let does = of_nodes(wanted, running);
            format!("{does} and {} may (not ready)", number(unknown))
        }
    };
    format!("DaemonSet {name}: {what}.")
}

fn of_nodes(wanted: usize, running: usize) -> String {
    let do_it = if running == 1 { "does" } else { "do" };
    let (wanted, running) = (nodes_text(wanted), number(running));
    format!("of {wanted} that should run it, {running} {do_it}")
}

pub(super) fn title(verdict: Verdict, colours: Colours) -> String {
    match verdict {
        Verdict::Missing => colours.red("Should run it and does not"),
        Verdict::Lingers => colours.yellow("Runs it and should not"),
        Verdict::Unknown => colours.red("Node not ready, may still run it"),
        Verdict::Excluded => colours.bold("Not eligible"),
        Verdict::Runs => colours.green("Runs"),
    }
}

/// Groups nodes in the same state: the largest groups first, then in the order of their first nodes, and nodes without
/// problems last.
fn groups<'a>(nodes: impl Iterator<Item = &'a NodeAnswer>) -> Vec<Vec<&'a NodeAnswer>> {
    let mut places: BTreeMap<(Cause, &str, &[String], String), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&NodeAnswer>> = Vec::new();
    for node in nodes {
        let (message, remarks) = (node.message.as_str(), node.remarks.as_slice());
        let key = (node.cause, message, remarks, general_remedy(node));
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(node),
            None => groups.push(vec![node]),
        }
    }
    let up_to_date =
        |group: &[&NodeAnswer]| group.first().is_some_and(|n| n.cause == Cause::UpToDate);
    groups.sort_by_key(|group| (up_to_date(group), std::cmp::Reverse(group.len())));
    groups
}

/// The remedy without the names of the node and its pods: the same for all nodes that it helps.
fn general_remedy(node: &NodeAnswer) -> String {
    let remedy = node.remedy.clone().unwrap_or_default();
    let pods = node.pods.iter().map(|pod| pod.name.as_str());
    let names = std::iter::once(node.node.as_str()).chain(pods);
    names.fold(remedy, |remedy, name| remedy.replace(name, ""))
}

fn group_lines(
    snapshot: &Snapshot,
    group: &[&NodeAnswer],
    all: bool,
    colours: Colours,
) -> Vec<String> {
    let Some(first) = group.first() else {
        return Vec::new();
    };
    let mut lines = names(group, all);
    if let Some(last) = lines.last_mut() {
        last.push_str(&duration_text(snapshot, group));
    }
    if first.cause != Cause::UpToDate {
        lines.push(format!("    {}", first.message));
    }
    lines.extend(first.remarks.iter().map(|remark| format!("    {remark}")));
    let log = log::lines(first.log.as_ref());
    lines.extend(log.iter().map(|line| format!("      {line}")));
    let remedy = first.remedy.iter().flat_map(|remedy| remedy.lines());
    lines.extend(remedy.map(|line| format!("      {}", colours.dim(line))));
    lines
}

/// `, for 5m`, the longest of them; `, for 12s to 5m` if they differ much.
fn duration_text(snapshot: &Snapshot, group: &[&NodeAnswer]) -> String {
    let durations = group.iter().filter_map(|node| node.since);
    let durations = durations.map(|since| snapshot.now.saturating_since(since));
    let durations: Vec<Duration> = durations.collect();
    let (Some(least), Some(most)) = (durations.iter().min(), durations.iter().max()) else {
        return String::new();
    };
    let longest = human_duration(*most);
    if *most <= *least * 2 {
        return format!(", for {longest}");
    }
    format!(", for {} to {longest}", human_duration(*least))
}

/// The names of a group's nodes, wrapped.
fn names(group: &[&NodeAnswer], all: bool) -> Vec<String> {
    let shown = if all || group.len() <= NAMED_MAX + 1 {
        group.len()
    } else {
        NAMED_MAX
    };
    let mut lines = Vec::new();
    let mut line = String::from(" ");
    for (index, node) in group.iter().take(shown).enumerate() {
        if index > 0 {
            line.push(',');
        }
        if index > 0 && line.len() + node.node.len() > WIDTH {
            lines.push(std::mem::replace(&mut line, String::from(" ")));
        }
        line.push(' ');
        line.push_str(&node.node);
    }
    let more = group.len() - shown;
    lines.push(match more {
        0 => line,
        more => format!("{line} and {} more (--all names them)", number(more)),
    });
    lines
}

fn nodes_text(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{} nodes", number(count)),
    }
}

/// With thousands separators: `4,812`.
fn number(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_separators() {
        let shown = [0, 12, 999, 1000, 50_000, 1_234_567].map(number);
        assert_eq!(shown, ["0", "12", "999", "1,000", "50,000", "1,234,567"]);
    }
}
