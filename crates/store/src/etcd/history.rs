//! Recognises etcd's history. A snapshot that was restored takes etcd back to an older state, often under the same cluster id, and
//! new writes may pass the revision that this server knows before the server is connected again.
//!
//! While the server runs, [`Last`] tells what the last revision did that memory shows; in a restored etcd the same revision did
//! something else. Over restarts, a [`Note`] in a file has the cluster id and the revision. After a restore, the revision is
//! raised above those that clients know from before, so that none of them means another state.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::Path;

use super::client::Client;
use super::error::{CallError, EtcdError};
use super::load;
use super::proto::{KeyValue, ResponseHeader, WatchEvent, unsigned};
use super::raise::{self, RAISE_MAX};
use crate::record::Revision;

/// How many revisions a server that was killed may have served since its last note: five seconds of writes.
const NOTE_SLACK: Revision = 50_000;

/// What the last revision did that memory shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    revision: Revision,
    /// Of its events. Nobody chooses them in order to collide.
    digest: u64,
}

/// How etcd shows that it has another history than memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OtherHistory {
    #[error("revision {0} did something else when this server saw it")]
    Differs(Revision),
    #[error("revision {0}, which this server has seen, is not in its history")]
    Absent(Revision),
}

fn revision_of(event: &WatchEvent) -> Option<Revision> {
    event.kv.as_ref().map(|kv| unsigned(kv.mod_revision))
}

impl Last {
    /// The last revision of some events, which are in order.
    pub(super) fn of(events: &[WatchEvent]) -> Option<Self> {
        let revision = events.iter().rev().find_map(revision_of)?;
        Self::at(revision, events)
    }

    /// This revision, if it is among these events.
    fn at(revision: Revision, events: &[WatchEvent]) -> Option<Self> {
        let mut hasher = DefaultHasher::new();
        let mut is_found = false;
        let of_revision = |event: &&WatchEvent| revision_of(event) == Some(revision);
        for event in events.iter().filter(of_revision) {
            is_found = true;
            event.kind.hash(&mut hasher);
            if let Some(kv) = &event.kv {
                hash(kv, &mut hasher);
            }
        }
        is_found.then(|| Self {
            revision,
            digest: hasher.finish(),
        })
    }
}

fn hash(kv: &KeyValue, hasher: &mut DefaultHasher) {
    let KeyValue {
        key,
        create_revision,
        mod_revision,
        version,
        value,
        lease,
    } = kv;
    (key, create_revision, mod_revision).hash(hasher);
    (version, value, lease).hash(hasher);
}

/// Compares the first events of a watch that began at the revision that memory shows with what this server knows of that
/// revision. Returns it, or what contradicts.
pub(super) fn recognise(
    shown: Revision,
    known: Option<Last>,
    events: &[WatchEvent],
) -> Result<Option<Last>, OtherHistory> {
    let found = Last::at(shown, events);
    match known.filter(|known| known.revision == shown) {
        // A load knows the state alone.
        None => Ok(found),
        Some(known) if found == Some(known) => Ok(found),
        Some(_) if found.is_some() => Err(OtherHistory::Differs(shown)),
        Some(_) => Err(OtherHistory::Absent(shown)),
    }
}

/// What a server notes over its restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) cluster: u64,
    pub(super) revision: Revision,
    /// Whether the server has ended since, so that it served no later revision.
    pub(super) is_last: bool,
}

impl Note {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let cluster = u64::from_str_radix(words.next()?, 16).ok()?;
        let revision = words.next()?.parse().ok()?;
        let is_last = words.next() == Some("closed");
        Some(Self {
            cluster,
            revision,
            is_last,
        })
    }

    fn text(&self) -> String {
        let end = if self.is_last { "closed" } else { "open" };
        format!("{:x} {} {end}\n", self.cluster, self.revision)
    }

    /// `None` without a file, or if a power cut has damaged it.
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let new = path.with_extension("new");
        std::fs::File::create(&new)?.write_all(self.text().as_bytes())?;
        std::fs::rename(new, path)
    }

    /// How etcd contradicts the note.
    fn contradiction(&self, header: &ResponseHeader) -> Option<String> {
        let now = unsigned(header.revision);
        if header.cluster_id != self.cluster {
            return Some(format!(
                "its cluster has the id {:x} instead of {:x}",
                header.cluster_id, self.cluster
            ));
        }
        let seen = self.revision;
        (now < seen).then(|| format!("it is at revision {now}, and was at {seen}"))
    }

    /// The last revision that clients may know.
    fn last_served(&self) -> Revision {
        let slack = if self.is_last { 0 } else { NOTE_SLACK };
        self.revision.saturating_add(slack)
    }
}

/// Before a server loads etcd: compares it with what the server noted when it last ran.
pub(super) async fn check_note(client: &Client, path: Option<&Path>) -> Result<(), EtcdError> {
    let Some(note) = path.and_then(Note::read) else {
        return Ok(());
    };
    let unreachable = |error: CallError| EtcdError::Unreachable(error.to_string());
    let header = load::newest(client, load::PAGE_TIMEOUT).await;
    let header = header.map_err(unreachable)?;
    match note.contradiction(&header) {
        Some(reason) => go_on_after_restore(client, &reason, note.last_served())
            .await
            .map_err(unreachable),
        None => Ok(()),
    }
}

/// Raises the revision of an etcd that has another history than before above those that clients may know, unless there are too many.
pub(super) async fn go_on_after_restore(
    client: &Client,
    reason: &str,
    served: Revision,
) -> Result<(), CallError> {
    let now = unsigned(load::newest(client, load::PAGE_TIMEOUT).await?.revision);
    tracing::error!(
        "etcd has another history than this server knows, as after the restore of a snapshot: {reason}. All watches end, and \
         objects are those of etcd now"
    );
    let gap = (served + 1).saturating_sub(now);
    if gap > RAISE_MAX {
        tracing::error!(
            "the revision of etcd is {gap} behind what clients may know, which is too far to raise it: restart the agents and \
             other clients"
        );
        return Ok(());
    }
    let told = |at, to| {
        tracing::warn!("raising the revision of etcd above those that clients know: {at} of {to}");
    };
    raise::raise(client, served + 1, told).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(revision: i64, value: &[u8]) -> WatchEvent {
        WatchEvent {
            kind: 0,
            kv: Some(KeyValue {
                key: b"k".to_vec(),
                create_revision: 2,
                mod_revision: revision,
                version: 1,
                value: value.to_vec(),
                lease: 0,
            }),
        }
    }

    fn delete(revision: i64) -> WatchEvent {
        WatchEvent {
            kind: super::super::proto::DELETE,
            kv: Some(KeyValue {
                key: b"k".to_vec(),
                mod_revision: revision,
                ..KeyValue::default()
            }),
        }
    }

    #[test]
    fn the_same_revision_of_another_history_is_recognised() {
        let seen = Last::of(&[put(4, b"x"), put(5, b"a"), put(5, b"b")]);
        let check = |events: &[WatchEvent], expected: bool| {
            let found = recognise(5, seen, events);
            assert_eq!(found.is_ok(), expected, "{found:?}");
        };
        check(&[put(5, b"a"), put(5, b"b")], true);
        check(&[put(5, b"a"), put(5, b"b"), put(6, b"c")], true);
        check(&[put(5, b"a")], false);
        check(&[put(5, b"b"), put(5, b"a")], false);
        check(&[delete(5)], false);
        // Its events are not there any more: a deletion was compacted, or it is another history.
        check(&[put(6, b"c")], false);
    }

    #[test]
    fn what_a_load_has_not_seen_is_learnt() {
        let found = recognise(5, None, &[put(5, b"a"), put(6, b"b")]);
        assert_eq!(found, Ok(Last::of(&[put(5, b"a")])));
        assert_eq!(recognise(5, None, &[put(6, b"b")]), Ok(None));
    }

    #[test]
    fn a_note_tells_of_another_cluster_and_an_older_revision() {
        let note = Note {
            cluster: 0xabc,
            revision: 70,
            is_last: true,
        };
        assert_eq!(Note::parse(&note.text()), Some(note));
        assert_eq!(note.last_served(), 70);
        let killed = Note {
            is_last: false,
            ..note
        };
        assert_eq!(Note::parse(&killed.text()), Some(killed));
        assert_eq!(killed.last_served(), 70 + NOTE_SLACK);
        for torn in ["", "abc", "abc x"] {
            assert_eq!(Note::parse(torn), None, "{torn}");
        }
        let check = |cluster_id, revision, expected: Option<&str>| {
            let header = ResponseHeader {
                cluster_id,
                revision,
            };
            assert_eq!(note.contradiction(&header).as_deref(), expected);
        };
        check(0xabc, 70, None);
        check(0xabc, 69, Some("it is at revision 69, and was at 70"));
        check(1, 99, Some("its cluster has the id 1 instead of abc"));
    }
}
