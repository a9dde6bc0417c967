//! The answer for one node in detail: rules, pods, containers, events.

use kennel_core::why::{Answer, Cause, NodeAnswer, PodAnswer, Snapshot, human_duration};
use kennel_types::Timestamp;
use kennel_types::event::Event;

use super::log;
use super::summary::{is_warning, title};
use crate::colour::Colours;

/// Events shown, the newest first.
const EVENTS_MAX: usize = 10;

/// The verdict, and what it is based on.
pub fn text(snapshot: &Snapshot, answer: &Answer, pod: Option<&str>, colours: Colours) -> String {
    let Some(node) = answer.nodes.first() else {
        return String::new();
    };
    let verdict = problem(snapshot, answer, pod, colours);
    let mut lines = vec![verdict.trim_end().to_owned()];
    lines.extend(rules(snapshot, node, colours));
    if !node.pods.is_empty() {
        lines.extend([String::new(), colours.bold("Pods")]);
        let pods = node.pods.iter();
        lines.extend(pods.flat_map(|pod| pod_lines(pod, snapshot.now)));
    }
    lines.extend(events(snapshot, node, colours));
    lines.join("\n") + "\n"
}

/// The verdict alone.
pub fn problem(
    snapshot: &Snapshot,
    answer: &Answer,
    pod: Option<&str>,
    colours: Colours,
) -> String {
    let Some(node) = answer.nodes.first() else {
        return String::new();
    };
    let mut lines: Vec<String> = Vec::new();
    if let Some(pod) = pod {
        lines.extend([owner(answer, pod), String::new()]);
    }
    lines.push(heading(answer, node, colours));
    lines.extend(verdict(snapshot, node, colours));
    lines.extend(answer.notes.iter().map(|note| {
        let label = if is_warning(note) { "warning" } else { "note" };
        format!("  {label:<8} {}", note.message)
    }));
    lines.join("\n") + "\n"
}

/// What a pod belongs to.
fn owner(answer: &Answer, pod: &str) -> String {
    let (namespace, name) = (&answer.namespace, &answer.name);
    let (desired, available) = (answer.counts.desired, answer.counts.available);
    format!(
        "Pod {namespace}/{pod} belongs to DaemonSet {namespace}/{name}, which is available on {available} of {desired} nodes."
    )
}

fn heading(answer: &Answer, node: &NodeAnswer, colours: Colours) -> String {
    let set = colours.bold(&format!("{}/{}", answer.namespace, answer.name));
    let name = colours.bold(&node.node);
    let title = title(node.verdict, colours).to_lowercase();
    format!("Node {name}, DaemonSet {set}: {title}")
}

/// One line.
pub fn brief(answer: &Answer, colours: Colours) -> String {
    let node = answer.nodes.first();
    let line = node.map(|node| {
        let because = match node.cause {
            Cause::UpToDate => String::new(),
            _ => format!(" ({})", node.message),
        };
        format!("{}{because}\n", heading(answer, node, colours))
    });
    line.unwrap_or_default()
}

fn verdict(snapshot: &Snapshot, node: &NodeAnswer, colours: Colours) -> Vec<String> {
    let since = node.since;
    let since = since.map(|since| {
        format!(
            ", for {}",
            human_duration(snapshot.now.saturating_since(since))
        )
    });
    let cause = node.cause.name() + &since.unwrap_or_default();
    let mut lines = vec![format!("  cause    {cause}")];
    lines.push(format!("  because  {}", node.message));
    lines.extend(
        node.remarks
            .iter()
            .map(|remark| format!("  also     {remark}")),
    );
    let log = log::lines(node.log.as_ref());
    // The label is title enough.
    let log = &log[usize::from(log.len() > 1)..];
    lines.extend(log.iter().enumerate().map(|(index, line)| {
        let label = if index == 0 { "log" } else { "" };
        format!("  {label:<8} {line}")
    }));
    let remedy = node.remedy.iter().flat_map(|remedy| remedy.lines());
    lines.extend(remedy.enumerate().map(|(index, line)| {
        let label = if index == 0 { "try" } else { "" };
        format!("  {label:<8} {}", colours.bold(line))
    }));
    lines
}

fn rules(snapshot: &Snapshot, node: &NodeAnswer, colours: Colours) -> Vec<String> {
    if node.checks.is_empty() {
        let known = snapshot.nodes.iter().any(|n| *n.view.name == *node.node);
        let text = "The pod template has no node constraints, and this node has no taints.";
        let lines = known.then(|| vec![String::new(), text.to_owned()]);
        return lines.unwrap_or_default();
    }
    let mut lines = vec![String::new(), colours.bold("Placement rules, in order")];
    lines.extend(node.checks.iter().map(|check| {
        let mark = if check.holds {
            colours.green("yes")
        } else {
            colours.red("no ")
        };
        format!("  {mark}  {}: {}", check.rule, check.found)
    }));
    lines
}

fn pod_lines(pod: &PodAnswer, now: Timestamp) -> Vec<String> {
    let age = format!(
        "created {} ago",
        human_duration(now.saturating_since(pod.created))
    );
    let facts = [
        Some(pod.phase),
        Some(if pod.ready { "ready" } else { "not ready" }),
        (pod.ready && !pod.available).then_some("not available yet"),
        Some(if pod.updated {
            "current template"
        } else {
            "old template"
        }),
        pod.terminating.then_some("being deleted"),
        Some(&age),
    ];
    let facts: Vec<&str> = facts.into_iter().flatten().collect();
    let mut lines = vec![format!("  {}: {}", pod.name, facts.join(", "))];
    lines.extend(pod.containers.iter().map(|container| {
        let kind = if container.init {
            "init container"
        } else {
            "container"
        };
        let restarts = match container.restarts {
            0 => String::new(),
            1 => ", 1 restart".to_owned(),
            n => format!(", {n} restarts"),
        };
        format!(
            "    {kind} {}: {}{restarts}",
            container.name, container.state
        )
    }));
    lines
}

fn events(snapshot: &Snapshot, node: &NodeAnswer, colours: Colours) -> Vec<String> {
    let here = |name: &str| node.pods.iter().any(|pod| pod.name == name);
    let pods = snapshot.pods.iter().filter(|pod| here(&pod.view.name));
    let mut events: Vec<&Event> = pods
        .flat_map(|pod| snapshot.events_of(&pod.view.uid))
        .collect();
    let title = if events.is_empty() {
        events = snapshot.events_of(&snapshot.daemon_set.uid);
        "Last events of the DaemonSet"
    } else {
        events.sort_by_key(|event| std::cmp::Reverse(event.last_seen()));
        "Last events of its pods"
    };
    if events.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), colours.bold(title)];
    let events = events.into_iter().take(EVENTS_MAX);
    lines.extend(events.map(|event| event_line(event, snapshot.now)));
    lines
}

fn event_line(event: &Event, now: Timestamp) -> String {
    let ago = human_duration(now.saturating_since(event.last_seen()));
    let times = match event.occurrences() {
        1 => String::new(),
        n => format!(" (x{n})"),
    };
    let words: Vec<&str> = event.message.split_whitespace().collect();
    let (kind, reason, message) = (&event.r#type, &event.reason, words.join(" "));
    format!("  {ago:>6} ago  {kind:<7}  {reason}: {message}{times}")
}
