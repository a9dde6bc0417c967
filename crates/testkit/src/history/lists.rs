//! A list at revision R shows exactly the objects whose last change up to R was no deletion, as that change left them.

use super::changes::Changes;
use super::{Figures, History, List, Rule, Violation};

pub(super) fn check(
    history: &History,
    changes: &Changes,
    figures: &mut Figures,
    violations: &mut Vec<Violation>,
) {
    for list in history.all_lists() {
        figures.lists += 1;
        for key in changes.keys() {
            match finding(list, key, changes) {
                Finding::Right => {}
                Finding::Unjudged => figures.unjudged += 1,
                Finding::Wrong(detail) => {
                    let (client, at) = (list.client, list.revision);
                    let detail = format!("client {client}, at {at}, {key}: {detail}");
                    violations.push(Violation::new(Rule::List, detail));
                }
            }
        }
    }
}

enum Finding {
    Right,
    /// It may have been deleted while nobody watched.
    Unjudged,
    Wrong(String),
}

fn finding(list: &List, key: &str, changes: &Changes) -> Finding {
    let last = changes.last(key, list.revision);
    match (list.objects.get(key), last) {
        (Some(seen), _) if seen.revision > list.revision => {
            Finding::Wrong(format!("shows {seen:?}"))
        }
        (Some(seen), Some((revision, change))) if seen.revision != revision => {
            Finding::Wrong(format!("shows {seen:?} after {revision} was {change:?}"))
        }
        (None, Some((revision, change))) if change.content.is_some() => {
            if changes.is_complete(revision, list.revision) {
                Finding::Wrong(format!("misses {change:?} of {revision}"))
            } else {
                Finding::Unjudged
            }
        }
        _ => Finding::Right,
    }
}
