//! The reference model of a staged rollout: what it remembers, and when the history is reconciled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::Timestamp;

use super::super::super::event::{
    Answer, CheckAnswer, CheckRequest, Object, Outcome, Ticket, Write,
};
use super::super::super::history::Revision;
use super::super::pacing::Requested;
use super::super::rules::is_available;
use super::super::{Claim, Pending, PodWrite, ReferencePlanner, Set, Uid};
use super::inputs::{Daemon, Inputs, Standing};
use super::judging::Watched;
use crate::rollout::command::Commands;
use crate::rollout::policy::{Policy, Setting};
use crate::rollout::state::{Accepted, Cut, Phase, Record, StageTimes, State, Verdict};

/// What a rollout is derived from. It is derived anew when any of this changes.
#[derive(Clone, PartialEq)]
struct Basis {
    setting: Setting,
    commands: Commands,
    record: Record,
    stable: Option<String>,
    /// The hashes of all revisions, and whether their verdict is failed.
    hashes: BTreeMap<String, bool>,
    generation: i64,
    target: Uid,
}

impl Basis {
    fn began(&self, now: Timestamp) -> Timestamp {
        let state = self.record.state.as_ref();
        state.map_or(now, |state| state.since.min(now))
    }

    fn withdrawn(&self) -> BTreeSet<(String, String)> {
        let seen = self.record.state.iter().flat_map(|state| &state.seen);
        let gone = seen.filter(|(key, value)| !self.commands.has(key, value));
        gone.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    fn is_paused(&self) -> bool {
        let Commands { pause, freeze, .. } = &self.commands;
        matches!(self.setting, Setting::Invalid(_)) || pause.is_some() || freeze.is_some()
    }
}

/// R7: what the check of the present phase has said so far.
#[derive(Default)]
pub(super) struct Asked {
    /// The answer that counts.
    pub(super) answer: Option<CheckAnswer>,
    pub(super) open: Option<Ticket>,
    pub(super) times: u32,
    /// After an answer that is not clear.
    pub(super) not_before: Option<Timestamp>,
}

/// See the [module](self).
pub(in super::super) struct Rollout {
    basis: Basis,
    /// The last policy that could be read.
    policy: Policy,
    /// As they were when the history was reconciled last.
    revisions: Vec<Revision>,
    /// The state that is being written.
    transition: Option<Ticket>,
    /// The next state has to wait for a retry.
    stuck: bool,
    pub(super) began: Timestamp,
    pub(super) progressed: Timestamp,
    pub(super) asked: Asked,
    /// The model has not looked at the nodes yet: their pods tell when they became healthy.
    is_new: bool,
    /// Commands that were carried out and taken away since: they may be given again.
    pub(super) withdrawn: BTreeSet<(String, String)>,
    pub(super) nodes: BTreeMap<Arc<str>, Watched>,
}

impl Rollout {
    /// The hash of stable, as it was when the history was reconciled last.
    pub(super) fn stable(&self) -> Option<&str> {
        self.basis.stable.as_deref()
    }

    /// The same target with another basis.
    fn go_on(self, basis: Basis, policy: Policy, claimed: &[Revision], now: Timestamp) -> Self {
        let phase = |basis: &Basis| {
            let state = basis.record.state.as_ref();
            state.map(|s| (s.attempt, s.stage, s.phase, s.since))
        };
        let same_phase = phase(&self.basis) == phase(&basis);
        let began = if same_phase {
            self.began
        } else {
            basis.began(now)
        };
        // R1.3: another check has said nothing yet.
        let asked = if same_phase && self.policy.check == policy.check {
            self.asked
        } else {
            Asked::default()
        };
        let attempt = |basis: &Basis| basis.record.state.as_ref().map(|s| s.attempt);
        let mut withdrawn = basis.withdrawn();
        if self.basis.record == basis.record {
            withdrawn.extend(self.withdrawn);
        }
        let mut nodes = self.nodes;
        if attempt(&self.basis) != attempt(&basis) {
            for node in nodes.values_mut() {
                node.was_healthy = false;
            }
        }
        Self {
            policy,
            revisions: claimed.to_vec(),
            stuck: false,
            began,
            asked,
            // R5.2: what is paused does not count.
            progressed: if self.basis.is_paused() {
                now
            } else {
                self.progressed.max(began)
            },
            nodes,
            withdrawn,
            basis,
            ..self
        }
    }
}

/// A state that is written, without the words for people.
pub(in super::super) fn record_text(write: &Write) -> Option<String> {
    let Write::WriteRecord {
        revision,
        version,
        record,
    } = write
    else {
        return None;
    };
    // The commonest cause of failure is for people.
    let reason = |state: &State| {
        let code = state.reason.as_ref().map(|reason| reason.code.clone())?;
        let known = [
            "Aborted",
            "CheckFailed",
            "CheckInconclusive",
            "DeadlineExceeded",
            "NoNodes",
            "RevisionLost",
        ];
        Some(if known.contains(&code.as_str()) {
            code
        } else {
            "failures".to_owned()
        })
    };
    let state = record.state.as_ref().map(|state| {
        let told = reason(state);
        let mut state = state.clone();
        state.reason = None;
        (state, told)
    });
    Some(format!(
        "record {} at {version}: {:?} {state:?}",
        revision.name, record.verdict
    ))
}

/// What a check is asked.
pub(in super::super) fn check_text(request: &CheckRequest) -> String {
    let CheckRequest {
        check,
        revision,
        state,
    } = request;
    format!("check {check:?} of {revision} in {state}")
}

/// R9.4: when each stage of the attempt was the present one.
fn stage_times(old: Option<&State>, new: &State) -> Vec<StageTimes> {
    let ends = matches!(
        new.phase,
        Phase::Complete | Phase::RollingBack | Phase::Held
    );
    let close = |mut times: Vec<StageTimes>| {
        for open in times.iter_mut().filter(|times| times.ended.is_none()) {
            open.ended = Some(new.since);
        }
        times
    };
    let opened = StageTimes {
        stage: new.stage,
        began: new.since,
        ended: None,
    };
    let mut times = match old.filter(|old| old.attempt == new.attempt) {
        Some(old) if ends => close(old.stages.clone()),
        Some(old) if old.stage == new.stage => return old.stages.clone(),
        Some(old) => [close(old.stages.clone()), vec![opened]].concat(),
        None if ends || new.stage == 0 => Vec::new(),
        None => vec![opened],
    };
    while times.len() > 32 {
        times.remove(0);
    }
    times
}

impl ReferencePlanner {
    /// The rules for a DaemonSet that has a rollout.
    pub(in super::super) fn inputs<'a>(&'a self, set: &'a Set) -> Option<Inputs<'a>> {
        let rollout = set.rollout.as_ref()?;
        let revisions = rollout.revisions.iter().collect();
        let inputs = Inputs::new(
            &set.view,
            &self.namespaces,
            &self.nodes,
            self.daemons(set),
            revisions,
        )?;
        let inputs = inputs.with_stable(rollout.basis.stable.as_deref());
        Some(inputs.with_last_policy(Some(&rollout.policy)))
    }

    fn daemons<'a>(&'a self, set: &'a Set) -> Vec<Daemon<'a>> {
        let own = |pod: &&super::super::Pod| {
            self.claim_of(&pod.view) == Some((set.view.uid.clone(), Claim::Member))
        };
        let pods = self.pods.values().filter(own);
        pods.map(|pod| {
            let write = pod.write.filter(|(kind, _)| *kind == PodWrite::Delete);
            let deleting = write.is_some_and(|(_, write)| write.may_show(self.now));
            Daemon {
                view: &pod.view,
                available: is_available(pod.ready_at, set.view.min_ready_seconds, self.now),
                leaving: pod.view.terminating || deleting,
            }
        })
        .collect()
    }

    /// The hash of stable, which is not pruned (R5.8).
    pub(in super::super) fn stable_hash(&self, uid: &Uid, claimed: &[Revision]) -> Option<String> {
        let set = &self.sets[uid];
        let claimed = claimed.iter().collect();
        let inputs = Inputs::new(
            &set.view,
            &self.namespaces,
            &self.nodes,
            self.daemons(set),
            claimed,
        )?;
        inputs.stable.map(|stable| stable.hash().to_owned())
    }

    /// The current revision is known: derives how nodes are driven (R1, R2).
    pub(in super::super) fn sync_rollout(&mut self, uid: &Uid, claimed: &[Revision]) {
        let set = &self.sets[uid];
        let inputs = Inputs::new(
            &set.view,
            &self.namespaces,
            &self.nodes,
            self.daemons(set),
            claimed.iter().collect(),
        );
        let Some(inputs) = inputs.filter(|inputs| inputs.standing != Standing::Plain) else {
            self.set_mut(uid).rollout = None;
            return;
        };
        let failed = |r: &Revision| r.record.verdict == Some(Verdict::Failed);
        let hashes = claimed.iter().map(|r| (r.hash().to_owned(), failed(r)));
        let basis = Basis {
            setting: inputs.setting.clone(),
            commands: inputs.commands.clone(),
            record: inputs.record.clone(),
            stable: inputs.stable.map(|stable| stable.hash().to_owned()),
            hashes: hashes.collect(),
            generation: set.view.generation,
            target: inputs.target.uid.clone(),
        };
        let last = set.rollout.as_ref().map(|rollout| rollout.policy.clone());
        let policy = inputs.with_last_policy(last.as_ref()).applied_policy();
        let now = self.now;
        let began = basis.began(now);
        let old = self.set_mut(uid).rollout.take();
        let rollout = match old {
            Some(mut old) if old.basis == basis => {
                old.revisions = claimed.to_vec();
                old.policy = policy;
                old
            }
            Some(old) if old.basis.target == basis.target => old.go_on(basis, policy, claimed, now),
            _ => Rollout {
                withdrawn: basis.withdrawn(),
                basis,
                policy,
                revisions: claimed.to_vec(),
                transition: None,
                stuck: false,
                began,
                progressed: began,
                asked: Asked::default(),
                is_new: true,
                nodes: BTreeMap::new(),
            },
        };
        let target = rollout.basis.target.clone();
        let stable = rollout.basis.stable.clone();
        self.set_mut(uid).rollout = Some(rollout);
        self.supersede(uid, &target, claimed);
        self.renumber_stable(uid, &target, stable.as_deref(), claimed);
    }

    /// R5.6: `policy: none` ends the hold. Nothing of the verdict is left but the commands, attempt and times.
    pub(in super::super) fn release(&mut self, uid: &Uid, target: &Revision) {
        let set = &self.sets[uid];
        let none = BTreeMap::new();
        let defaults = self.namespaces.get(&set.view.namespace);
        let setting = Setting::parse(&set.view.annotations, defaults.unwrap_or(&none));
        if setting != Setting::Off || target.record.verdict != Some(Verdict::Failed) {
            return;
        }
        let mut record = target.record.clone();
        record.verdict = None;
        if let Some(state) = record.state.as_mut().filter(|state| *state.owner == **uid) {
            (state.phase, state.stage, state.cut) = (Phase::Complete, 0, Cut::Nothing);
            (state.stable, state.reason) = (None, None);
            state.accepted = Accepted::None;
            state.since = super::stepping::whole_second(self.now);
        }
        let version = target.version.clone();
        self.write_revision(uid, target, |revision| {
            let write = Write::WriteRecord {
                revision,
                version,
                record: Box::new(record),
            };
            record_text(&write).unwrap()
        });
    }

    /// R5.7.
    fn supersede(&mut self, uid: &Uid, target: &Uid, claimed: &[Revision]) {
        for revision in claimed {
            let ends = revision.record.verdict == Some(Verdict::Progressing);
            if revision.uid == *target || !ends {
                continue;
            }
            let record = Record {
                verdict: Some(Verdict::Superseded),
                ..revision.record.clone()
            };
            let version = revision.version.clone();
            self.write_revision(uid, revision, |revision| {
                let write = Write::WriteRecord {
                    revision,
                    version,
                    record: Box::new(record),
                };
                record_text(&write).unwrap()
            });
        }
    }

    /// R5.8.
    fn renumber_stable(
        &mut self,
        uid: &Uid,
        target: &Uid,
        stable: Option<&str>,
        claimed: &[Revision],
    ) {
        let Some(stable) = claimed.iter().find(|r| Some(r.hash()) == stable) else {
            return;
        };
        let number = |r: &Revision| r.revision;
        let others = claimed.iter().filter(|r| r.uid != *target);
        let highest = others.map(number).max().unwrap_or(0);
        if stable.revision < highest {
            let all = claimed.iter().filter(|r| r.uid == *target).map(number);
            let number = all.max().unwrap_or(0).max(highest) + 1;
            self.write_revision(uid, stable, |object| {
                format!("RenumberRevision {{ revision: {object:?}, number: {number} }}")
            });
        }
    }

    /// No node changes its revision.
    pub(super) fn is_held(set: &Set, inputs: &Inputs<'_>) -> bool {
        let rollout = set.rollout.as_ref();
        let writes = rollout.is_some_and(|r| r.transition.is_some() || r.stuck);
        inputs.standing != Standing::Back && (inputs.is_held() || writes)
    }

    /// Takes the steps that are due (R3 to R6, R8.1).
    pub(in super::super) fn advance_rollout_state(&mut self, uid: &Uid) {
        self.watch_nodes(uid);
        self.note_progress(uid);
        let set = &self.sets[uid];
        let Some(rollout) = &set.rollout else {
            return;
        };
        if rollout.transition.is_some() {
            return;
        }
        let Some(inputs) = self.inputs(set) else {
            return;
        };
        let totals = self.totals(set, &inputs);
        let before = self.ignored_before(uid, &inputs);
        match super::stepping::step(&inputs, rollout, totals, self.now, &before) {
            super::stepping::Next::Nothing => self.set_unstuck(uid),
            super::stepping::Next::Ask => {
                let request = CheckRequest {
                    check: inputs.policy.check.clone().unwrap(),
                    revision: inputs.target.hash().into(),
                    state: serde_json::to_string(&inputs.record.state).unwrap(),
                };
                self.set_unstuck(uid);
                self.ask(uid, &request);
            }
            super::stepping::Next::Tell(key, value) => {
                let rollout = self.set_mut(uid).rollout.as_mut().unwrap();
                rollout.withdrawn.remove(&(key.to_owned(), value));
                self.sync(uid);
                self.advance_rollout_state(uid);
            }
            super::stepping::Next::Write(verdict, state) => {
                let target = inputs.target.clone();
                self.write_record(uid, &target, verdict, *state);
            }
        }
    }

    /// R5.2: when a node first became healthy. A new controller takes the last time from the target's pods, but has five
    /// minutes of the deadline at least.
    pub(in super::super) fn note_progress(&mut self, uid: &Uid) {
        let now = self.now;
        let set = &self.sets[uid];
        let (Some(rollout), Some(inputs)) = (&set.rollout, self.inputs(set)) else {
            return;
        };
        let names = rollout.nodes.iter().filter(|(_, node)| !node.was_healthy);
        let names = names.map(|(name, _)| name.clone());
        let healthy: Vec<Arc<str>> = names
            .filter(|name| self.judge(set, &inputs, name).healthy)
            .collect();
        let progressed = if rollout.is_new {
            let deadline = i64::try_from(inputs.policy.progress_deadline.as_millis()).unwrap();
            let rest = (deadline - 5 * 60_000).max(0);
            let pods = healthy.iter().flat_map(|name| inputs.daemons_on(name));
            let pods = pods.filter(|pod| !pod.view.terminating && inputs.is_of_target(pod.view));
            let min_ready = set.view.min_ready_seconds * 1_000;
            let since = pods.filter_map(|pod| pod.view.ready_since);
            let since = since.map(|since| since.saturating_add_millis(min_ready));
            let last = since.max().unwrap_or(Timestamp::MIN).min(now);
            Some(last.max(now.saturating_add_millis(-rest)))
        } else {
            (!healthy.is_empty()).then_some(now)
        };
        let rollout = self.set_mut(uid).rollout.as_mut().unwrap();
        rollout.is_new = false;
        rollout.progressed = progressed.unwrap_or(rollout.progressed);
        for name in healthy {
            if let Some(node) = rollout.nodes.get_mut(&name) {
                node.was_healthy = true;
            }
        }
    }

    /// R6.1: the commands that did nothing with an earlier target and are still there. One that names that target may have
    /// been carried out.
    fn ignored_before(&self, uid: &Uid, inputs: &Inputs<'_>) -> BTreeMap<String, String> {
        let own = |r: &&Revision| r.controller.as_ref() == Some(uid) && r.uid != inputs.target.uid;
        let mut ignored = BTreeMap::new();
        for revision in self.revisions.values().filter(own) {
            let state = revision.record.state.as_ref();
            let Some(state) = state.filter(|state| *state.owner == **uid) else {
                continue;
            };
            for (key, value, command) in &inputs.commands.once {
                let seen = state.seen.get(*key) == Some(value);
                if seen && super::stepping::named(command) != Some(revision.hash()) {
                    ignored.insert((*key).to_owned(), value.clone());
                }
            }
        }
        ignored
    }

    /// R7: asked once at a time, and a minute after an answer that is not clear.
    fn ask(&mut self, uid: &Uid, request: &CheckRequest) {
        let now = self.now;
        let rollout = self.sets[uid].rollout.as_ref().unwrap();
        let waits = rollout.asked.not_before.is_some_and(|at| at > now);
        if waits || rollout.asked.open.is_some() {
            return;
        }
        let ticket = self.request(uid, &check_text(request), "".into(), Pending::Check);
        let asked = &mut self.set_mut(uid).rollout.as_mut().unwrap().asked;
        asked.open = Some(ticket);
        asked.times += 1;
    }

    pub(in super::super) fn check_finished(&mut self, ticket: Ticket, answer: CheckAnswer) {
        let now = self.now;
        self.pending.remove(&ticket);
        let rollouts = self.sets.values_mut();
        let mut rollouts = rollouts.filter_map(|set| set.rollout.as_mut());
        let Some(rollout) = rollouts.find(|rollout| rollout.asked.open == Some(ticket)) else {
            return;
        };
        let asked = &mut rollout.asked;
        asked.open = None;
        // It is asked again twice, a minute apart.
        if matches!(answer, CheckAnswer::Inconclusive(_)) && asked.times < 3 {
            asked.not_before = Some(now.saturating_add_millis(60_000));
        } else {
            asked.answer = Some(answer);
        }
    }

    /// Nothing waits to be written any more.
    fn set_unstuck(&mut self, uid: &Uid) {
        if let Some(rollout) = &mut self.set_mut(uid).rollout {
            rollout.stuck = false;
        }
    }

    fn write_record(&mut self, uid: &Uid, target: &Revision, verdict: Verdict, mut state: State) {
        let given = &self.sets[uid].view.annotations;
        state.seen.retain(|key, value| {
            let key = format!("{}{key}", crate::rollout::PREFIX);
            given.get(&key) == Some(value)
        });
        let own = |state: &&State| *state.owner == **uid;
        let old = target.record.state.as_ref().filter(own);
        state.stages = stage_times(old, &state);
        // R5.5
        let goes = !matches!(
            state.phase,
            Phase::Complete | Phase::RollingBack | Phase::Held
        );
        let present = old.is_some_and(|o| o.attempt == state.attempt && o.stage == state.stage);
        if !goes {
            state.failing = BTreeSet::new();
        } else if state.stage > 0 && !present {
            let inputs = self.inputs(&self.sets[uid]).unwrap();
            state.failing = inputs.fail_before_their_turn();
        }
        let earlier = self.sets[uid].history.writes.get(&target.uid).copied();
        if earlier.is_some_and(|earlier| earlier.blocks(self.now)) {
            self.set_mut(uid).rollout.as_mut().unwrap().stuck = true;
            return;
        }
        let write = Write::WriteRecord {
            revision: Object {
                name: target.name.clone(),
                uid: target.uid.clone(),
            },
            version: target.version.clone(),
            record: Box::new(Record {
                verdict: Some(verdict),
                state: Some(state),
            }),
        };
        let text = record_text(&write).unwrap();
        let ticket = self.request(uid, &text, "".into(), Pending::Record(uid.clone()));
        let write = Requested::new(self.now, ticket, earlier);
        self.timers.insert((write.until, uid.clone()));
        let set = self.set_mut(uid);
        set.history.writes.insert(target.uid.clone(), write);
        set.rollout.as_mut().unwrap().transition = Some(ticket);
    }

    pub(in super::super) fn record_written(
        &mut self,
        ticket: Ticket,
        uid: &Uid,
        outcome: &Outcome,
    ) {
        let now = self.now;
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        if let Some(rollout) = &mut set.rollout {
            rollout.transition = rollout.transition.filter(|pending| *pending != ticket);
        }
        match outcome {
            Ok(Answer::Revision(revision)) => self.on_revision(revision),
            Ok(_) => {}
            Err(failure) => {
                let mut writes = set.history.writes.values_mut();
                if let Some(write) = writes.find(|write| write.ticket == ticket) {
                    write.fail(now, failure);
                    write.expect_nothing();
                    let until = write.until;
                    self.timers.insert((until, uid.clone()));
                }
            }
        }
        self.trigger_history(uid);
    }
}
