//! All changes that somebody saw, in the order of their revisions. Writes show theirs; those of deletions are known
//! from watches alone, so that the record is complete only where one watched.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Answer, Content, History, Kind, Operation, Revision, Rule, Seen, Step, Violation};

/// What happened at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: String,
    pub(super) uid: Arc<str>,
    /// None if it was deleted.
    pub(super) content: Option<Content>,
}

/// What happened, and where nothing else did.
#[derive(Debug, Default)]
pub(super) struct Changes {
    all: BTreeMap<Revision, Change>,
    by_key: BTreeMap<String, BTreeMap<Revision, Change>>,
    /// Revisions that a watcher of all objects has covered: after the first up to the second.
    watched: Vec<(Revision, Revision)>,
}

impl Changes {
    pub(super) fn of(
        history: &History,
        operations: &[Operation],
        violations: &mut Vec<Violation>,
    ) -> Self {
        let mut changes = Self::default();
        for operation in operations {
            if let Answer::Shown(seen) = &operation.answer {
                changes.put(&operation.key, seen, Some(seen.content), violations);
            }
        }
        for list in history.all_lists() {
            for (key, seen) in &list.objects {
                changes.put(key, seen, Some(seen.content), violations);
            }
        }
        for stream in &history.streams {
            let mut from = None;
            let mut position = 0;
            for step in &stream.steps {
                match step {
                    Step::Listed(list) => {
                        changes.watched(stream.only.is_none(), from, position);
                        (from, position) = (Some(list.revision), list.revision);
                    }
                    Step::Event {
                        kind, key, seen, ..
                    } => {
                        let content = (*kind != Kind::Deleted).then_some(seen.content);
                        changes.put(key, seen, content, violations);
                        position = position.max(seen.revision);
                    }
                    Step::Bookmark { revision, .. } => position = position.max(*revision),
                    Step::Connected { .. } => {}
                }
            }
            changes.watched(stream.only.is_none(), from, position);
        }
        changes.join_watched();
        for (revision, change) in &changes.all {
            let of_key = changes.by_key.entry(change.key.clone()).or_default();
            of_key.insert(*revision, change.clone());
        }
        changes
    }

    fn put(
        &mut self,
        key: &str,
        seen: &Seen,
        content: Option<Content>,
        violations: &mut Vec<Violation>,
    ) {
        let change = Change {
            key: key.to_owned(),
            uid: Arc::clone(&seen.uid),
            content,
        };
        let first = self.all.entry(seen.revision);
        let first = first.or_insert_with(|| change.clone());
        if *first != change {
            let detail = format!("revision {} is {first:?} and {change:?}", seen.revision);
            violations.push(Violation::new(Rule::Revision, detail));
        }
    }

    fn watched(&mut self, all: bool, from: Option<Revision>, to: Revision) {
        if let Some(from) = from.filter(|from| all && *from < to) {
            self.watched.push((from, to));
        }
    }

    /// Joins ranges that overlap or touch.
    fn join_watched(&mut self) {
        self.watched.sort_unstable();
        let mut joined: Vec<(Revision, Revision)> = Vec::new();
        for (from, to) in self.watched.drain(..) {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        self.watched = joined;
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.by_key.keys()
    }

    /// The last change of an object up to a revision.
    pub(super) fn last(&self, key: &str, to: Revision) -> Option<(Revision, &Change)> {
        let of_key = self.by_key.get(key)?;
        let last = of_key.range(..=to).next_back();
        last.map(|(revision, change)| (*revision, change))
    }

    /// The first change after a revision and up to another one, of one object or of any.
    pub(super) fn between(
        &self,
        only: Option<&str>,
        after: Revision,
        to: Revision,
    ) -> Option<(Revision, &Change)> {
        let changes = match only {
            None => &self.all,
            Some(key) => self.by_key.get(key)?,
        };
        if after >= to {
            return None;
        }
        let first = changes.range(after + 1..=to).next();
        first.map(|(revision, change)| (*revision, change))
    }

    /// Whether a watcher would have seen each change in this range.
    pub(super) fn is_complete(&self, after: Revision, to: Revision) -> bool {
        after >= to
            || self
                .watched
                .iter()
                .any(|(from, end)| *from <= after && to <= *end)
    }
}
