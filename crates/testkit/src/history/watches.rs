//! What a watcher receives: each change after its start once, in order, with the right type and object; and bookmarks that are true.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::changes::Changes;
use super::{Content, Figures, Kind, List, Revision, Rule, Seen, Step, Stream, Violation};

/// What a watcher knows.
struct Watcher<'a> {
    stream: &'a Stream,
    changes: &'a Changes,
    position: Revision,
    objects: BTreeMap<&'a str, (&'a Arc<str>, Content)>,
    violations: &'a mut Vec<Violation>,
}

pub(super) fn check(
    stream: &Stream,
    changes: &Changes,
    figures: &mut Figures,
    violations: &mut Vec<Violation>,
) {
    let mut watcher = Watcher {
        stream,
        changes,
        position: 0,
        objects: BTreeMap::new(),
        violations,
    };
    for step in &stream.steps {
        match step {
            Step::Listed(list) => watcher.listed(list),
            Step::Connected { after } => {
                figures.connections += 1;
                assert_eq!(*after, watcher.position, "a watcher goes on where it was");
            }
            Step::Event {
                kind, key, seen, ..
            } => {
                figures.events += 1;
                watcher.event(*kind, key, seen);
            }
            Step::Bookmark { revision, .. } => {
                figures.bookmarks += 1;
                watcher.bookmark(*revision);
            }
        }
    }
}

impl<'a> Watcher<'a> {
    fn wrong(&mut self, rule: Rule, detail: &str) {
        let detail = format!(
            "watcher {} at {}: {detail}",
            self.stream.watcher, self.position
        );
        self.violations.push(Violation::new(rule, detail));
    }

    fn listed(&mut self, list: &'a List) {
        if list.revision < self.position {
            self.wrong(Rule::WatchOrder, &format!("a list at {}", list.revision));
        }
        self.position = list.revision;
        let objects = list.objects.iter();
        self.objects = objects
            .map(|(key, seen)| (&**key, (&seen.uid, seen.content)))
            .collect();
    }

    fn event(&mut self, kind: Kind, key: &'a str, seen: &'a Seen) {
        if seen.revision <= self.position {
            let detail = format!("{kind:?} {key} {seen:?} is not after it");
            self.wrong(Rule::WatchOrder, &detail);
            return;
        }
        let only = self.stream.only.as_deref();
        let missed = self.changes.between(only, self.position, seen.revision - 1);
        if let Some((revision, change)) = missed {
            let detail = format!("{} comes before {revision}, {change:?}", seen.revision);
            self.wrong(Rule::WatchGap, &detail);
        }
        let before = self.objects.get(key).copied();
        let fits = match (kind, before) {
            (Kind::Added, None) => true,
            (Kind::Modified, Some((uid, _))) => *uid == seen.uid,
            (Kind::Deleted, Some(before)) => before == (&seen.uid, seen.content),
            _ => false,
        };
        if !fits {
            let detail = format!("{kind:?} {key} {seen:?} after {before:?}");
            self.wrong(Rule::WatchType, &detail);
        }
        if kind == Kind::Deleted {
            self.objects.remove(key);
        } else {
            self.objects.insert(key, (&seen.uid, seen.content));
        }
        self.position = seen.revision;
    }

    fn bookmark(&mut self, revision: Revision) {
        if revision < self.position {
            self.wrong(Rule::WatchOrder, &format!("a bookmark at {revision}"));
            return;
        }
        let only = self.stream.only.as_deref();
        if let Some((missed, change)) = self.changes.between(only, self.position, revision) {
            let detail = format!("a bookmark at {revision} comes before {missed}, {change:?}");
            self.wrong(Rule::Bookmark, &detail);
        }
        self.position = revision;
    }
}
