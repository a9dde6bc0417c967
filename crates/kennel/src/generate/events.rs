//! The page of events, from the table that everyone who emits them is held to.

use std::fmt::Write as _;

use kennel_client::events::reasons::{self, Known};

use super::markdown::cell;

const HEAD: &str = "# Events

What `kubectl describe` and `kubectl events` show. Reasons and words are upstream's, and so is the way that they are
combined: what repeats is counted, many that are similar become one, and an object about which too much is said is not
heard for a while. Events are kept for an hour (`--event-ttl`).
";

/// The page.
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
            put(&mut out, known);
        }
    }
    out
}

fn put(out: &mut String, known: &Known) {
    let kind = if known.warning { "Warning" } else { "Normal" };
    let about = match known.about {
        "" => "any object",
        about => about,
    };
    let (reason, when) = (known.reason, cell(known.when));
    let _ = writeln!(out, "| `{reason}` | {kind} | {about} | {when} |");
}
