//! The reference page of events, from the table of all event reasons.

use std::fmt::Write as _;

use kennel_client::events::reasons::{self, Known};

use super::markdown::cell;

const HEAD: &str = "# Events

What `kubectl describe` and `kubectl events` show. Reasons and messages are those of upstream Kubernetes, and so is the
correlation: repeated events are counted, many similar events are aggregated into one, and objects with too many events
are rate-limited. What happens to a staged rollout as a whole has limits of its own, so that the events of its pods do not
displace it. Events are kept for an hour (`--event-ttl`).
";

pub(super) fn page() -> String {
    let mut out = HEAD.to_owned();
    let mut components: Vec<&str> = Vec::new();
    for known in reasons::ALL {
        if !components.contains(&known.component) {
            components.push(known.component);
        }
    }
    for component in components {
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n## {component}\n\n| Reason | Type | About a | When |\n|---|---|---|---|\n"
        );
        for known in reasons::ALL
            .iter()
            .filter(|known| known.component == component)
        {
            write_row(&mut out, known);
        }
    }
    out
}

fn write_row(out: &mut String, known: &Known) {
    let kind = if known.warning { "Warning" } else { "Normal" };
    let about = match known.about {
        "" => "any object",
        about => about,
    };
    let (reason, when) = (known.reason, cell(known.when));
    let _ = writeln!(out, "| `{reason}` | {kind} | {about} | {when} |");
}
