//! The copies that revisions own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::super::event::{Answer, Failure, FailureKind, Identity, Outcome, Ticket, Write};
use super::super::super::expectation::Expectation;
use super::super::super::history::Revision;
use super::super::Planner;
use super::super::write_results::WriteKind;
use super::table::Namespace;
use crate::ids::SetId;
use crate::rollout::config::{self, ConfigCopy, References, config_hash, copy_name, named};
use crate::rollout::state::Record;

/// Where the content of each ConfigMap is: the name of one that has it, and its hash. `None` where there was none.
type Sources = BTreeMap<String, Option<(Arc<str>, Arc<str>)>>;

/// The pinned template of a revision.
struct Pinned {
    config: String,
    references: References,
}

fn pinned(revision: &Revision) -> Option<Pinned> {
    let template = config::may_be_pinned(&revision.data).then(|| revision.template());
    let template: Value = template.flatten()?;
    Some(Pinned {
        config: named(&template)?.to_owned(),
        references: config::references(&template),
    })
}

/// Whether the revision has every copy that its pods need.
fn has_copies(table: &Namespace, revision: &Revision, pinned: &Pinned) -> bool {
    let mut needed = pinned.references.config_maps.iter();
    needed.all(|(name, needed)| {
        let copy = copy_name(name, &pinned.config, revision.hash());
        !needed || table.copy(&copy, &revision.uid).is_some()
    })
}

/// Where to copy the config of a revision from: the ConfigMaps themselves while they have that content, else the copies of
/// another revision with the same config.
fn sources(table: &Namespace, pinned: &Pinned, claimed: &[Revision]) -> Option<Sources> {
    let names = || pinned.references.config_maps.keys();
    let complete = |found: &Sources| {
        let hashes = found.iter().map(|(name, source)| {
            let hash = source.as_ref().map(|(_, hash)| &**hash);
            (name.as_str(), hash)
        });
        config_hash(hashes) == pinned.config
    };
    let live = names().map(|name| {
        let found = table.get(name);
        let source = found.map(|map| (map.view.name.clone(), map.view.hash.clone()));
        (name.clone(), source)
    });
    let of_copies = claimed.iter().map(|other| -> Sources {
        let of = |name: &String| {
            let copy = copy_name(name, &pinned.config, other.hash());
            let found = table.copy(&copy, &other.uid);
            let source = found.map(|view| (view.name.clone(), view.hash.clone()));
            (name.clone(), source)
        };
        names().map(of).collect()
    });
    std::iter::once(live.collect())
        .chain(of_copies)
        .find(complete)
}

impl Planner {
    /// Makes the copies that the target and stable lack, and lets the rollout of the target start when its own are there.
    pub(in super::super) fn sync_copies(
        &mut self,
        set: SetId,
        target: &Revision,
        claimed: &[Revision],
    ) {
        let stable = self.sets[set].staged.as_deref();
        let stable = stable.and_then(|staged| staged.stable.as_ref());
        let stable = stable.map(|stable| stable.hash.clone());
        let mut lacks = false;
        if self.sets[set].pins.is_some() {
            for revision in claimed {
                if revision.uid == target.uid {
                    lacks = !self.copy_config(set, revision, claimed);
                } else if stable.as_deref() == Some(revision.hash()) {
                    self.copy_config(set, revision, claimed);
                } else {
                    self.delete_unfinished(set, revision);
                }
            }
        }
        if let Some(staged) = self.sets[set].staged.as_deref_mut() {
            staged.lacks_copies = lacks;
        }
    }

    /// Requests the copies that a revision lacks. True if it has all.
    fn copy_config(&mut self, set: SetId, revision: &Revision, claimed: &[Revision]) -> bool {
        let Some(pinned) = pinned(revision) else {
            return true;
        };
        if pinned.references.config_maps.is_empty() {
            return true;
        }
        let Some(table) = self.config_maps.of(&revision.namespace) else {
            return false;
        };
        let sources = sources(table, &pinned, claimed);
        let mut copies = Vec::new();
        let mut lost = Vec::new();
        let mut complete = true;
        for (name, needed) in &pinned.references.config_maps {
            let copy: Arc<str> = copy_name(name, &pinned.config, revision.hash()).into();
            if table.copy(&copy, &revision.uid).is_some() {
                continue;
            }
            let source = sources.as_ref().map(|sources| sources[name].as_ref());
            match source {
                Some(Some((source, hash))) => copies.push(ConfigCopy {
                    name: copy,
                    source: source.clone(),
                    hash: hash.clone(),
                    config_map: name.as_str().into(),
                    config: pinned.config.as_str().into(),
                    revision: revision.object(),
                    revision_hash: revision.hash().into(),
                }),
                // There was none when the config was pinned.
                Some(None) => continue,
                None if *needed => lost.push(name.clone()),
                None => continue,
            }
            complete = false;
        }
        let frozen = self.is_frozen(set);
        for copy in copies.into_iter().filter(|_| !frozen) {
            self.request_copy(set, copy);
        }
        self.emit_lost_config(set, revision, &lost);
        complete
    }

    fn request_copy(&mut self, set: SetId, copy: ConfigCopy) {
        let now = self.now;
        let ticket = self.next_ticket();
        let pins = self.sets[set].pins.as_mut();
        let pins = pins.expect("copies are only made of config that is pinned");
        let earlier = pins.copies.get(&copy.name).copied();
        if earlier.is_some_and(|earlier| earlier.blocks(now)) {
            return;
        }
        let expectation = Expectation::new(now, ticket, earlier);
        let name = copy.name.clone();
        pins.copies.insert(name.clone(), expectation);
        self.recheck_history(set, expectation.until);
        let write = Write::CopyConfig(Arc::new(copy));
        self.request(ticket, set, write, WriteKind::Copy(name));
    }

    pub(in super::super) fn copy_finished(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<Identity>,
        name: &str,
        outcome: &Outcome,
    ) {
        if let Ok(Answer::ConfigMap(view)) = outcome {
            self.on_config_map(view.clone());
        }
        let now = self.now;
        let known = self.sets.get_mut(set);
        // The DaemonSet may be gone by now, and another one may have its id.
        let Some(known) = known.filter(|known| known.reference.uid == daemon_set.uid) else {
            return;
        };
        let copies = known.pins.as_mut().map(|pins| &mut pins.copies);
        if let Some(copies) = copies
            && let Some(expected) = copies.get_mut(name)
            && expected.ticket == ticket
        {
            if let Err(failure) = outcome {
                *expected = expected.failed(now, failure).for_retry();
                let until = expected.until;
                self.recheck_history(set, until);
                self.emit_failed_copy(daemon_set, name, failure);
            } else {
                copies.remove(name);
            }
        }
        self.mark_history(set);
    }

    fn emit_failed_copy(&mut self, daemon_set: &Arc<Identity>, name: &str, failure: &Failure) {
        // The source has changed since, and is looked at again; or nothing can be created any more.
        let expected = [FailureKind::NotFound, FailureKind::NamespaceTerminating];
        if !expected.contains(&failure.kind) {
            let text = format!("Cannot make the copy {name}: {}", failure.message);
            self.emit(daemon_set, true, "FailedCopy", text);
        }
    }

    /// Says once that the content of copies exists no more.
    fn emit_lost_config(&mut self, set: SetId, revision: &Revision, lost: &[String]) {
        let known = &mut self.sets[set];
        let reference = known.reference.clone();
        let pins = known.pins.as_mut();
        let pins = pins.expect("copies are only missed of config that is pinned");
        for name in lost {
            let what = format!("{}/{name}", revision.hash());
            if pins.lost.insert(what) {
                let text = format!(
                    "Revision {} has no copy of ConfigMap {name}, and its content exists no more",
                    revision.hash()
                );
                self.actions.push(super::super::Action::Emit {
                    daemon_set: reference.clone(),
                    note: super::super::Note::new(true, "ConfigMissing", text),
                });
            }
        }
    }

    /// Deletes a revision whose config changed before it could be copied: it was never used and never can be.
    fn delete_unfinished(&mut self, set: SetId, revision: &Revision) {
        if revision.record != Record::default() || self.is_frozen(set) {
            return;
        }
        let Some(pinned) = pinned(revision) else {
            return;
        };
        let hash = self.symbols.intern(Some(revision.hash()));
        let known = &self.sets[set];
        let table = self.config_maps.of(&known.reference.namespace);
        let unfinished = table.is_some_and(|table| !has_copies(table, revision, &pinned));
        if unfinished && !known.hash_uses.contains_key(&hash) {
            self.write_revision(set, revision.object(), Write::DeleteRevision);
        }
    }

    /// What to say about config when a rollout starts.
    pub(in super::super) fn config_notes(&self, set: SetId) -> Vec<(bool, &'static str, String)> {
        let known = &self.sets[set];
        if let Some(pins) = &known.pins {
            let secrets: Vec<&str> = pins.references.secrets.iter().map(String::as_str).collect();
            if secrets.is_empty() {
                return Vec::new();
            }
            let text = format!(
                "Secrets are not copied, so that revoked credentials do not live on; a way back keeps the present {}",
                secrets.join(", ")
            );
            return vec![(false, "SecretsNotPinned", text)];
        }
        let stable = known.staged.as_deref();
        let stable = stable.and_then(|staged| staged.stable.as_ref());
        let owned = self.revisions.owned_by(&known.reference.uid);
        let stable = stable.and_then(|stable| owned.iter().find(|r| *r.hash() == *stable.hash));
        let template = stable.and_then(Revision::template);
        let same = |stable: Value| config::only_checksums_differ(&stable, &known.view.template);
        if !template.is_some_and(same) {
            return Vec::new();
        }
        let text = "Only checksums of config have changed: a way back cannot bring the old config back, unless \
                    rollout.kennel.dev/pin-config is \"true\"";
        vec![(true, "ConfigNotPinned", text.to_owned())]
    }
}
