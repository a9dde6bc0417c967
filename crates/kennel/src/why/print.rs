//! The answer for all nodes: what is wrong first, and nodes in the same state together.

use std::collections::BTreeMap;

use kennel_core::why::{Answer, Cause, NodeAnswer, Snapshot, Verdict, span};

use super::paint::Paint;

/// So many nodes in the same state are named.
const NAMED_MAX: usize = 8;
/// So many groups of nodes of one verdict are told.
const GROUPS_MAX: usize = 12;
/// Lines of names are not longer.
const WIDTH: usize = 96;

/// The text.
pub(super) fn text(snapshot: &Snapshot, answer: &Answer, all: bool, paint: Paint) -> String {
    let mut lines = vec![heading(answer, paint)];
    let notes = answer.notes.iter().map(|note| note.message.as_str());
    lines.extend(notes.map(|note| format!("Note: {}.", note.trim_end_matches('.'))));
    for verdict in [
        Verdict::Missing,
        Verdict::Lingers,
        Verdict::Excluded,
        Verdict::Runs,
    ] {
        lines.extend(chapter(snapshot, answer, verdict, all, paint));
    }
    lines.join("\n") + "\n"
}

/// All nodes of one verdict.
fn chapter(
    snapshot: &Snapshot,
    answer: &Answer,
    verdict: Verdict,
    all: bool,
    paint: Paint,
) -> Vec<String> {
    let groups = groups(answer.nodes.iter().filter(|node| node.verdict == verdict));
    if groups.is_empty() {
        return Vec::new();
    }
    let count = groups.iter().map(Vec::len).sum();
    let title = format!("{}: {}", title(verdict, paint), nodes_text(count));
    let mut lines = vec![String::new(), title];
    let shown = if all { groups.len() } else { GROUPS_MAX };
    for group in groups.iter().take(shown) {
        lines.extend(group_lines(snapshot, group, all, paint));
    }
    if let Some(rest) = groups.get(shown..).filter(|rest| !rest.is_empty()) {
        let nodes = nodes_text(rest.iter().map(Vec::len).sum());
        lines.push(paint.dim(&format!("  and {nodes} for other causes: --all tells them")));
    }
    lines
}

fn heading(answer: &Answer, paint: Paint) -> String {
    let counts = &answer.counts;
    let name = paint.bold(&format!("{}/{}", answer.namespace, answer.name));
    let running = answer.nodes.iter();
    let running = running.filter(|node| node.verdict == Verdict::Runs).count();
    let wanted = running + counts.missing;
    let what = match (wanted, running) {
        (0, _) => "no node should run it".to_owned(),
        (1, 0) => "the one node that should run it does not".to_owned(),
        (1, _) => "the one node that should run it does".to_owned(),
        (wanted, running) if wanted == running => {
            format!("all {} that should run it do", nodes_text(wanted))
        }
        (wanted, 0) => format!("none of the {} that should run it does", nodes_text(wanted)),
        (wanted, running) => {
            let do_it = if running == 1 { "does" } else { "do" };
            let (wanted, running) = (nodes_text(wanted), number(running));
            format!("of {wanted} that should run it, {running} {do_it}")
        }
    };
    format!("DaemonSet {name}: {what}.")
}

pub(super) fn title(verdict: Verdict, paint: Paint) -> String {
    match verdict {
        Verdict::Missing => paint.red("Should run it and does not"),
        Verdict::Lingers => paint.yellow("Runs it and should not"),
        Verdict::Excluded => paint.bold("Does not belong"),
        Verdict::Runs => paint.green("Runs"),
    }
}

/// Nodes in the same state, the largest groups first; plain ones that run are last.
fn groups<'a>(nodes: impl Iterator<Item = &'a NodeAnswer>) -> Vec<Vec<&'a NodeAnswer>> {
    let mut groups: BTreeMap<(Cause, &str, &[String]), Vec<&NodeAnswer>> = BTreeMap::new();
    for node in nodes {
        let key = (node.cause, node.message.as_str(), node.remarks.as_slice());
        groups.entry(key).or_default().push(node);
    }
    let mut groups: Vec<Vec<&NodeAnswer>> = groups.into_values().collect();
    let plain = |group: &[&NodeAnswer]| group.first().is_some_and(|n| n.cause == Cause::UpToDate);
    groups.sort_by_key(|group| (plain(group), std::cmp::Reverse(group.len())));
    groups
}

fn group_lines(snapshot: &Snapshot, group: &[&NodeAnswer], all: bool, paint: Paint) -> Vec<String> {
    let Some(first) = group.first() else {
        return Vec::new();
    };
    let mut lines = names(group, all);
    if let ([_], Some(since), Some(last)) = (group, first.since, lines.last_mut()) {
        last.push_str(", for ");
        last.push_str(&span(snapshot.now - since.0));
    }
    if first.cause != Cause::UpToDate {
        lines.push(format!("    {}", first.message));
    }
    lines.extend(first.remarks.iter().map(|remark| format!("    {remark}")));
    let remedy = first.remedy.iter().flat_map(|remedy| remedy.lines());
    lines.extend(remedy.map(|line| format!("      {}", paint.dim(line))));
    lines
}

/// The names of a group's nodes, in lines that are not too long.
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

/// `4,812`.
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
    fn numbers_are_grouped() {
        let shown = [0, 12, 999, 1000, 50_000, 1_234_567].map(number);
        assert_eq!(shown, ["0", "12", "999", "1,000", "50,000", "1,234,567"]);
    }
}
