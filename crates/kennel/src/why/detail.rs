//! The answer for one node, with all that it rests on: rules, pods, containers, events.

use kennel_core::why::{Answer, Event, NodeAnswer, PodAnswer, Snapshot, span};

use super::paint::Paint;
use super::print::title;

/// So many events are shown, the newest first.
const EVENTS_MAX: usize = 10;

/// The text.
pub(super) fn text(snapshot: &Snapshot, answer: &Answer, paint: Paint) -> String {
    let Some(node) = answer.nodes.first() else {
        return String::new();
    };
    let set = format!("{}/{}", answer.namespace, answer.name);
    let mut text = format!(
        "Node {}, DaemonSet {}: {}\n",
        paint.bold(&node.node),
        paint.bold(&set),
        title(node.verdict, paint).to_lowercase()
    );
    text.push_str(&verdict(snapshot, node, paint));
    for note in &answer.notes {
        text.push_str(&format!("  note     {}\n", note.message));
    }
    if !node.checks.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("Rules of placing, in order")));
        for check in &node.checks {
            let mark = if check.holds {
                paint.green("yes")
            } else {
                paint.red("no ")
            };
            text.push_str(&format!("  {mark}  {}: {}\n", check.rule, check.found));
        }
    } else if snapshot.nodes.iter().any(|n| *n.view.name == *node.node) {
        text.push_str("\nThe template asks nothing of its nodes, and this one has no taints.\n");
    }
    if !node.pods.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("Pods")));
        for pod in &node.pods {
            text.push_str(&pod_text(pod, snapshot.now));
        }
    }
    text.push_str(&events_text(snapshot, node, paint));
    text
}

fn verdict(snapshot: &Snapshot, node: &NodeAnswer, paint: Paint) -> String {
    let since = node
        .since
        .map(|since| format!(", for {}", span(snapshot.now - since)));
    let mut text = format!(
        "  cause    {}{}\n  because  {}\n",
        node.cause.word(),
        since.unwrap_or_default(),
        node.message
    );
    for remark in &node.remarks {
        text.push_str(&format!("  also     {remark}\n"));
    }
    for (index, line) in node
        .remedy
        .iter()
        .flat_map(|remedy| remedy.lines())
        .enumerate()
    {
        let label = if index == 0 { "try" } else { "" };
        text.push_str(&format!("  {label:<8} {}\n", paint.bold(line)));
    }
    text
}

fn pod_text(pod: &PodAnswer, now: i64) -> String {
    let mut words = vec![pod.phase.clone()];
    words.push(if pod.ready { "ready" } else { "not ready" }.to_owned());
    if pod.ready && !pod.available {
        words.push("not available yet".to_owned());
    }
    words.push(
        if pod.updated {
            "present template"
        } else {
            "old template"
        }
        .to_owned(),
    );
    if pod.terminating {
        words.push("being deleted".to_owned());
    }
    words.push(format!("made {} ago", span(now - pod.created)));
    words.retain(|word| !word.is_empty());
    let mut text = format!("  {}: {}\n", pod.name, words.join(", "));
    for container in &pod.containers {
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
        let name = &container.name;
        text.push_str(&format!(
            "    {kind} {name}: {}{restarts}\n",
            container.state
        ));
    }
    text
}

fn events_text(snapshot: &Snapshot, node: &NodeAnswer, paint: Paint) -> String {
    let here = |name: &str| node.pods.iter().any(|pod| pod.name == name);
    let uids = snapshot.pods.iter().filter(|pod| here(&pod.view.name));
    let uids = uids.map(|pod| &*pod.view.uid);
    let mut events: Vec<&Event> = uids.flat_map(|uid| snapshot.events_of(uid)).collect();
    let title = if events.is_empty() {
        events = snapshot.events_of(&snapshot.daemon_set.uid);
        "Last events of the DaemonSet"
    } else {
        events.sort_by_key(|event| std::cmp::Reverse(event.last()));
        "Last events of its pods"
    };
    if events.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.bold(title));
    for event in events.into_iter().take(EVENTS_MAX) {
        let ago = span(snapshot.now - event.last());
        let times = match event.times() {
            1 => String::new(),
            n => format!(" (x{n})"),
        };
        let message = event
            .message
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let (kind, reason) = (&event.r#type, &event.reason);
        text.push_str(&format!(
            "  {ago:>6} ago  {kind:<7}  {reason}: {message}{times}\n"
        ));
    }
    text
}
