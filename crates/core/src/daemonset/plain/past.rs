//! History (rule 4) without anything remembered but what was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::event::{Answer, Failure, FailureKind, Millis, Outcome, Ticket};
use super::super::history::{Revision, Step, data, name, prune, reconcile};
use super::super::wait::{EXPECTATION_MS, Wait};
use super::super::{HASH_LABEL, event::Object};
use super::{Claim, Pending, Plain, PodWrite, Uid};

#[derive(Default)]
pub(super) struct Past {
    pub(super) triggered: bool,
    made: Option<(Revision, Millis)>,
    creation: Option<Wait>,
    collided: bool,
    waits: BTreeMap<Uid, Wait>,
    /// There were duplicates when it was last looked at.
    merging: bool,
    /// Hashes that kept revisions beyond the limit when it was last looked at.
    kept_for: BTreeSet<String>,
}

impl Past {
    pub(super) fn start_over(&mut self) {
        self.creation = None;
        self.collided = false;
    }

    fn saw(&mut self, uid: &Uid) {
        self.waits.remove(uid);
        if self.made.as_ref().is_some_and(|(made, _)| made.uid == *uid) {
            self.made = None;
        }
    }
}

impl Plain {
    pub(super) fn saw_revision(&mut self, view: &Revision) {
        let old = self.revisions.insert(view.uid.clone(), view.clone());
        if old.as_ref() == Some(view) {
            return;
        }
        let born_owned = old.is_none() && view.controller.is_some();
        let before = old.and_then(|old| old.controller);
        for set in self.sets.values_mut() {
            let uid = Some(&set.view.uid);
            let owner = view.controller.as_ref() == uid || before.as_ref() == uid;
            let suits = view.controller.is_none()
                && set.view.namespace == view.namespace
                && set.selects(&view.labels);
            if owner || suits {
                set.past.saw(&view.uid);
                set.past.triggered |= !born_owned;
            }
        }
    }

    pub(super) fn lost_revision(&mut self, uid: &Uid) {
        let Some(old) = self.revisions.remove(uid) else {
            for set in self.sets.values_mut() {
                set.past.saw(uid);
            }
            return;
        };
        if let Some(set) = old.controller.and_then(|owner| self.sets.get_mut(&owner)) {
            set.past.saw(uid);
            set.past.triggered = true;
        }
    }

    /// The hashes that claimed pods with a target carry (rule 4.7).
    fn hashes_in_use(&self, uid: &Uid) -> BTreeSet<String> {
        let own = |uid: &Uid, pod: &super::Pod| {
            self.claim_of(&pod.view) == Some((uid.clone(), Claim::Member))
                && pod.view.target().is_some()
        };
        let pods = self.pods.values().filter(|pod| own(uid, pod));
        pods.filter_map(|pod| pod.view.labels.get(HASH_LABEL).cloned())
            .collect()
    }

    pub(super) fn reconcile(&mut self, uid: &Uid) {
        let used = self.hashes_in_use(uid);
        let now = self.now;
        let set = self.sets.get_mut(uid).unwrap();
        let freed = set.past.kept_for.iter().any(|hash| !used.contains(hash));
        if !self.synced || !(set.past.triggered || set.past.merging || freed) {
            return;
        }
        set.past.triggered = false;
        set.past.kept_for.clear();
        if set.idle() {
            set.live = None;
            set.past.merging = false;
            return;
        }
        if set
            .past
            .made
            .as_ref()
            .is_some_and(|(_, until)| *until <= now)
        {
            set.past.made = None;
        }
        let Some(claimed) = self.claim_revisions(uid) else {
            return;
        };
        let data = data::of_template(&self.sets[uid].view.template);
        let found = reconcile(&data, &claimed);
        let merges = found
            .steps
            .iter()
            .any(|step| matches!(step, Step::Merge { .. }));
        for step in &found.steps {
            self.take_step(uid, step, &data);
        }
        if found.current.is_some() {
            let limit = usize::try_from(self.sets[uid].view.revision_history_limit).unwrap();
            for doomed in prune(&found.old, limit, |hash| used.contains(hash)) {
                self.write_revision(uid, doomed, |object| format!("DeleteRevision({object:?})"));
            }
            let kept = found.old.iter().map(|revision| revision.hash().to_owned());
            let kept = kept.filter(|hash| found.old.len() > limit && used.contains(hash));
            self.sets.get_mut(uid).unwrap().past.kept_for = kept.collect();
        }
        let set = self.sets.get_mut(uid).unwrap();
        set.past.merging = merges;
        set.live = found.current.map(|revision| revision.hash().into());
    }

    fn claim_revisions(&mut self, uid: &Uid) -> Option<Vec<Revision>> {
        let set = &self.sets[uid];
        let mut claimed = Vec::new();
        let mut strays = Vec::new();
        let mut wanted = Vec::new();
        for revision in self.revisions.values() {
            let matches = set.selects(&revision.labels);
            match &revision.controller {
                Some(owner) if owner == uid && matches => claimed.push(revision.clone()),
                Some(owner) if owner == uid => strays.push(revision.clone()),
                None if matches
                    && !revision.terminating
                    && revision.namespace == set.view.namespace =>
                {
                    wanted.push(revision.clone());
                }
                _ => {}
            }
        }
        let made = set.past.made.as_ref().map(|(made, _)| made.clone());
        claimed.extend(made.filter(|made| !self.revisions.contains_key(&made.uid)));
        for stray in &strays {
            self.write_revision(uid, stray, |object| format!("ReleaseRevision({object:?})"));
        }
        for orphan in &wanted {
            self.write_revision(uid, orphan, |object| format!("AdoptRevision({object:?})"));
        }
        wanted.is_empty().then_some(claimed)
    }

    fn write_revision(
        &mut self,
        uid: &Uid,
        revision: &Revision,
        text: impl FnOnce(Object) -> String,
    ) {
        let before = self.sets[uid].past.waits.get(&revision.uid).copied();
        if before.is_some_and(|wait| wait.holds(self.now)) {
            return;
        }
        let text = text(Object {
            name: revision.name.clone(),
            uid: revision.uid.clone(),
        });
        let pending = Pending::Revision(uid.clone(), revision.uid.clone());
        let ticket = self.ask(uid, &text, "".into(), pending);
        let wait = Wait::asked(self.now, ticket, before);
        self.looks.insert((wait.until, uid.clone()));
        let past = &mut self.sets.get_mut(uid).unwrap().past;
        past.waits.insert(revision.uid.clone(), wait);
    }

    fn take_step(&mut self, uid: &Uid, step: &Step, data: &str) {
        let revision = |name: &Arc<str>, uid: &Arc<str>| Revision {
            namespace: "".into(),
            name: name.clone(),
            uid: uid.clone(),
            controller: None,
            labels: BTreeMap::new(),
            revision: 0,
            data: "".into(),
            terminating: false,
        };
        match step {
            Step::Create { .. } => self.create_revision(uid, data),
            Step::Label {
                name,
                uid: id,
                hash,
                ..
            } => self.write_revision(uid, &revision(name, id), |object| {
                format!("LabelRevision {{ revision: {object:?}, hash: {hash:?} }}")
            }),
            Step::Renumber {
                name,
                uid: id,
                revision: number,
            } => self.write_revision(uid, &revision(name, id), |object| {
                format!("RenumberRevision {{ revision: {object:?}, number: {number} }}")
            }),
            Step::Merge {
                name,
                uid: id,
                from,
                to,
            } => {
                if from == to || !self.relabel(uid, from, to) {
                    let text = |object| format!("DeleteRevision({object:?})");
                    self.write_revision(uid, &revision(name, id), text);
                }
            }
        }
    }

    fn relabel(&mut self, uid: &Uid, from: &str, to: &str) -> bool {
        let own = |pod: &&super::Pod| {
            self.claim_of(&pod.view) == Some((uid.clone(), Claim::Member))
                && !pod.view.terminating
                && pod.view.labels.get(HASH_LABEL).map(String::as_str) == Some(from)
        };
        let pods = self.pods.values().filter(own);
        let pods: Vec<Uid> = pods.map(|pod| pod.view.uid.clone()).collect();
        for pod in &pods {
            let known = &self.pods[pod];
            if !known.wait.is_some_and(|(_, wait)| wait.holds(self.now)) {
                let name = &known.view.name;
                let object = format!("Object {{ name: {name:?}, uid: {pod:?} }}");
                let text = format!("RelabelPod {{ pod: {object}, hash: {to:?} }}");
                self.pod_write(uid, pod, PodWrite::Relabel, &text);
            }
        }
        !pods.is_empty()
    }

    fn create_revision(&mut self, uid: &Uid, data: &str) {
        let set = &self.sets[uid];
        if set.past.creation.is_some_and(|wait| wait.holds(self.now)) {
            return;
        }
        let before = set.past.creation;
        let count = set.view.collision_count;
        let text = if set.past.collided {
            format!("CountCollision {{ known: {count:?} }}")
        } else {
            let name = name::name(&set.view.name, &name::hash(data, count));
            format!("create revision {name}")
        };
        let ticket = self.ask(uid, &text, "".into(), Pending::NewRevision(uid.clone()));
        let wait = Wait::asked(self.now, ticket, before);
        self.looks.insert((wait.until, uid.clone()));
        self.sets.get_mut(uid).unwrap().past.creation = Some(wait);
    }

    pub(super) fn new_revision_ended(&mut self, ticket: Ticket, uid: &Uid, outcome: &Outcome) {
        let now = self.now;
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        let past = &mut set.past;
        let Some(wait) = past.creation.filter(|wait| wait.ticket == ticket) else {
            return;
        };
        past.triggered = true;
        match outcome {
            Outcome::Done(Answer::Revision(made)) => {
                past.creation = None;
                past.made = Some((made.clone(), now + EXPECTATION_MS));
                self.looks.insert((now + EXPECTATION_MS, uid.clone()));
            }
            Outcome::Done(_) => {}
            Outcome::Failed(failure) if failure.kind == FailureKind::NameTaken => {
                past.collided = true;
                past.creation = None;
            }
            Outcome::Failed(failure) => {
                past.collided = false;
                let wait = wait.failed(now, failure).without_expectation();
                past.creation = Some(wait);
                self.looks.insert((wait.until, uid.clone()));
            }
        }
    }

    pub(super) fn revision_ended(
        &mut self,
        ticket: Ticket,
        uid: &Uid,
        revision: &Uid,
        failure: Option<&Failure>,
    ) {
        let now = self.now;
        if let Some(set) = self.sets.get_mut(uid)
            && let Some(wait) = set.past.waits.get_mut(revision)
            && wait.ticket == ticket
            && let Some(failure) = failure
        {
            *wait = wait.failed(now, failure);
            let until = wait.until;
            self.looks.insert((until, uid.clone()));
        }
    }
}
