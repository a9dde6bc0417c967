//! What must hold when the controller requests that a state is written (R3, R5, R6, R8.1).

use kennel_types::Timestamp;

use super::super::super::HASH_LABEL;
use super::super::super::view::Readiness;
use super::super::Uid;
use super::checks::{Checked, Checks, StageKey, is_failing, require, stage_of};
use super::inputs::{Inputs, Standing};
use crate::int_or_percent::IntOrPercent;
use crate::rollout::command::Command;
use crate::rollout::policy::{OnFailure, Setting};
use crate::rollout::state::{Accepted, AllNodes, Cut, Phase, Record, State, Verdict};

impl Checks {
    pub(super) fn record(
        &mut self,
        inputs: &Inputs<'_>,
        uid: &Uid,
        new: &Record,
        now: Timestamp,
    ) -> Checked {
        if *uid != inputs.target.uid {
            // R5.7
            let old = inputs.revisions.iter().find(|r| r.uid == *uid);
            let old = old.map(|old| old.record.clone()).unwrap_or_default();
            let ends = old.verdict == Some(Verdict::Progressing)
                && new.verdict == Some(Verdict::Superseded)
                && new.state == old.state;
            return require(ends, || format!("R5.7: {old:?} became {new:?}"));
        }
        if inputs.setting == Setting::Off {
            let held = inputs.record.verdict == Some(Verdict::Failed);
            let stays = inputs.state().map(|state| (state.attempt, &state.seen));
            let own = |state: &&State| *state.owner == *inputs.set.uid;
            let same = new.state.as_ref().filter(own).map(|s| (s.attempt, &s.seen)) == stays;
            return require(held && same && new.verdict.is_none(), || {
                format!("R5.6: {new:?} after {:?}", inputs.record)
            });
        }
        let state = new.state.as_ref().ok_or("a record without a state")?;
        self.requested.insert((uid.clone(), state.since), now);
        let policy = inputs.setting.policy().is_some();
        let invalid = matches!(inputs.setting, Setting::Invalid(_));
        require(
            policy || invalid || inputs.standing == Standing::Back,
            || format!("{new:?} without a policy"),
        )?;
        if let Some(old) = inputs.state()
            && only_sees(inputs, old, state)
        {
            let same = new.verdict == inputs.record.verdict;
            return require(same, || format!("R6.1: {:?} in {state:?}", new.verdict));
        }
        match (inputs.standing, inputs.state()) {
            (Standing::Unstarted, _) => starts(inputs, new, state),
            (Standing::Staged | Standing::Back, Some(old)) => {
                if let Err(rule) = self.steps(inputs, old, state, now) {
                    return require(false, || format!("{rule}: {old:?} became {state:?}"));
                }
                let verdict = match state.phase {
                    Phase::RollingBack | Phase::Held => Verdict::Failed,
                    Phase::Complete => Verdict::Stable,
                    _ => Verdict::Progressing,
                };
                require(new.verdict == Some(verdict), || {
                    format!("{:?} in {state:?}", new.verdict)
                })
            }
            _ => require(false, || format!("{new:?} follows {:?}", inputs.record)),
        }
    }

    fn steps(&self, inputs: &Inputs<'_>, old: &State, new: &State, now: Timestamp) -> Checked {
        let commanded = self.is_commanded(inputs, old, new);
        let retried = new.attempt == old.attempt + 1;
        require(new.stable == old.stable && new.owner == old.owner, || {
            "stable or owner changed".to_owned()
        })?;
        require(new.attempt == old.attempt || (retried && commanded), || {
            "R6: another attempt without a retry".to_owned()
        })?;
        match new.phase {
            Phase::Updating => self.updates(inputs, old, new, now, commanded),
            Phase::Baking if old.phase == Phase::Baking => cut_moves(inputs, old, new),
            Phase::Baking => {
                require(old.phase == Phase::Updating, || "R3.5".to_owned())?;
                let same = (new.stage, &new.cut) == (old.stage, &old.cut);
                require(same, || "the stage changed".to_owned())?;
                require(stage_of(inputs, old).0 > 0, || "R3.5: no bake".to_owned())?;
                is_complete(inputs, now)
            }
            Phase::AwaitingPromotion => {
                let from = matches!(old.phase, Phase::Updating | Phase::Baking);
                require(from, || "R3.6".to_owned())?;
                let reason = new.reason.as_ref();
                if reason.is_some_and(|reason| reason.code == "NoNodes") {
                    return Ok(());
                }
                require(stage_of(inputs, old).1, || "R3.6: not manual".to_owned())?;
                self.is_checked(inputs, old)?;
                self.has_baked(inputs, old, now)
            }
            Phase::Complete => {
                require(inputs.next_stage(old.stage).is_none(), || {
                    format!("R3.6: a stage is left: {:?}", inputs.next_stage(old.stage))
                })?;
                let (reached, all) = (inputs.admitted().len(), inputs.rollout_nodes().len());
                require(reached == all, || {
                    format!("R3.6: complete with {reached} of {all} nodes")
                })?;
                if commanded {
                    return Ok(());
                }
                self.is_checked(inputs, old)?;
                if old.phase != Phase::AwaitingPromotion {
                    self.has_baked(inputs, old, now)?;
                }
                is_complete(inputs, now)
            }
            Phase::Paused => {
                let from = goes(old);
                let pauses = inputs.policy.on_failure == OnFailure::Pause || old.stable.is_none();
                // R8.3
                let lost = old.stable.is_some() && inputs.stable.is_none();
                // R7: it never goes back for an answer that is not clear.
                let code = new.reason.as_ref().map(|reason| reason.code.as_str());
                let unclear = code == Some("CheckInconclusive") && inputs.policy.check.is_some();
                let fails = from && (pauses || lost || unclear) && new.reason.is_some();
                require(fails || commanded, || "R5.3".to_owned())
            }
            Phase::RollingBack => goes_back(inputs, old, new, commanded),
            Phase::Held => {
                require(old.phase == Phase::RollingBack, || "R5.4: held".to_owned())?;
                let left = inputs.nodes.keys().find(|name| {
                    inputs.has_target(name) && inputs.readiness(name) != Readiness::Unknown
                });
                require(left.is_none(), || format!("{left:?} has the target"))
            }
        }
    }

    fn updates(
        &self,
        inputs: &Inputs<'_>,
        old: &State,
        new: &State,
        now: Timestamp,
        commanded: bool,
    ) -> Checked {
        if new.attempt > old.attempt {
            let from = matches!(old.phase, Phase::Held | Phase::RollingBack | Phase::Paused);
            return require(from, || "R6: retry".to_owned());
        }
        let in_full = new.accepted == Accepted::All && new.cut == Cut::All(AllNodes);
        if in_full && (old.accepted != Accepted::All || commanded) {
            let all = commanded && new.cut == Cut::All(AllNodes);
            return require(all, || "R6: promoted in full".to_owned());
        }
        if new.stage == old.stage {
            return match old.phase {
                Phase::Updating => cut_moves(inputs, old, new),
                Phase::AwaitingPromotion => Ok(()),
                _ => require(old.phase == Phase::Paused && commanded, || {
                    "R5.3: goes on without a person".to_owned()
                }),
            };
        }
        let next = inputs.next_stage(old.stage);
        require(next == Some((new.stage, new.cut.clone())), || {
            format!("R3.1, R3.8: the next stage is {next:?}")
        })?;
        if commanded {
            return Ok(());
        }
        let gate = stage_of(inputs, old).1 && old.accepted != Accepted::All;
        require(!gate, || "R3.6: manual".to_owned())?;
        self.is_checked(inputs, old)?;
        // R1.3: what has waited at a gate that is gone has baked before.
        if old.phase != Phase::AwaitingPromotion {
            self.has_baked(inputs, old, now)?;
        }
        is_complete(inputs, now)
    }

    /// R7: asked at the end of each bake, or at completion where there is none; not on the way back, nor for a stable target.
    pub(super) fn asks(&self, inputs: &Inputs<'_>, now: Timestamp) -> Checked {
        let state = inputs.state().ok_or("R7: asked without a rollout")?;
        let runs = matches!(state.phase, Phase::Updating | Phase::Baking);
        let held = super::stepping::is_paused(inputs);
        let due = inputs.standing == Standing::Staged && runs && !held;
        require(due && inputs.policy.check.is_some(), || {
            format!("R7: asked in {:?} of {:?}", state.phase, inputs.standing)
        })?;
        self.has_baked(inputs, state, now)?;
        is_complete(inputs, now)
    }

    /// R7: the stage's check has passed.
    fn is_checked(&self, inputs: &Inputs<'_>, old: &State) -> Checked {
        let waits = matches!(old.phase, Phase::Updating | Phase::Baking);
        if inputs.policy.check.is_none() || old.accepted == Accepted::All || !waits {
            return Ok(());
        }
        let key: StageKey = (inputs.target.uid.clone(), old.attempt, old.stage);
        require(self.passed.contains(&key), || {
            format!("R7: goes on from {old:?} although its check has not passed")
        })
    }

    /// R3.5.
    fn has_baked(&self, inputs: &Inputs<'_>, old: &State, now: Timestamp) -> Checked {
        let (bake, _) = stage_of(inputs, old);
        if bake == 0 || old.accepted == Accepted::All {
            return Ok(());
        }
        require(old.phase == Phase::Baking, || "R3.5: not baked".to_owned())?;
        let key: StageKey = (inputs.target.uid.clone(), old.attempt, old.stage);
        let began = self.bakes.get(&key).copied().unwrap_or(Timestamp::MAX);
        let baked = now.millis_since(began);
        require(baked >= bake, || {
            format!("R3.5: baked for {baked} of {bake} ms")
        })
    }
}

impl Checks {
    /// A command for the target was carried out with this state.
    fn is_commanded(&self, inputs: &Inputs<'_>, old: &State, new: &State) -> bool {
        inputs.commands.once.iter().any(|(key, value, command)| {
            let hash = match command {
                Command::Promote { hash, .. }
                | Command::Abort { hash }
                | Command::Retry { hash, .. } => hash,
                Command::Unreadable => return false,
            };
            let given_again = ((*key).to_owned(), value.clone());
            let given_again = self.withdrawn.contains(&given_again);
            let fresh = old.seen.get(*key) != Some(value) || given_again;
            let done = new.seen.get(*key) == Some(value) && fresh;
            done && **hash == *inputs.target.hash()
        })
    }
}

/// R6.1: nothing but that commands were seen which are there.
fn only_sees(inputs: &Inputs<'_>, old: &State, new: &State) -> bool {
    let same = State {
        seen: new.seen.clone(),
        ..old.clone()
    };
    let given = |(key, value): (&String, &String)| inputs.commands.has(key, value);
    same == *new && new.seen != old.seen && new.seen.iter().all(given)
}

/// R5.4. Never for an answer that is not clear (R7).
fn goes_back(inputs: &Inputs<'_>, old: &State, new: &State, commanded: bool) -> Checked {
    let back = inputs.policy.on_failure == OnFailure::Rollback;
    require(old.stable.is_some(), || "R5.4: no stable".to_owned())?;
    let code = new.reason.as_ref().map(|reason| reason.code.as_str());
    let unclear = code == Some("CheckInconclusive");
    let fails = goes(old) && back && !unclear && code.is_some();
    require(fails || commanded, || "R5.4".to_owned())
}

/// The rollout may fail by itself.
fn goes(state: &State) -> bool {
    matches!(
        state.phase,
        Phase::Updating | Phase::Baking | Phase::AwaitingPromotion
    )
}

/// The first state of a rollout (R2, R2.1, R3.1).
fn starts(inputs: &Inputs<'_>, new: &Record, state: &State) -> Checked {
    if inputs.uncertain {
        return Ok(());
    }
    let hashes = inputs.pods.iter().filter(|d| d.view.target().is_some());
    let hashes = hashes.map(|d| d.view.labels.get(HASH_LABEL).map(String::as_str));
    let hashes: Vec<Option<&str>> = hashes.collect();
    let target = Some(inputs.target.hash());
    let only_target = !hashes.is_empty() && hashes.iter().all(|hash| *hash == target);
    let first = hashes.is_empty() && inputs.stable.is_none() && !inputs.policy.stages_on_create;
    let nodes = inputs.rollout_nodes();
    let selects = |name: &&std::sync::Arc<str>| inputs.target_selects(name);
    let next = inputs.next_stage(0);
    let ends = inputs.returns_to_stable();
    let expected = if first || only_target || ends || (nodes.is_empty() && next.is_none()) {
        (Verdict::Stable, Phase::Complete, 0, Cut::All(AllNodes))
    } else if !nodes.is_empty() && !nodes.iter().any(selects) {
        let phase = Phase::AwaitingPromotion;
        (Verdict::Progressing, phase, 0, Cut::Nothing)
    } else {
        let (stage, cut) = next.ok_or("no stage adds a node")?;
        (Verdict::Progressing, Phase::Updating, stage, cut)
    };
    let verdict = new.verdict.ok_or("no verdict")?;
    let found = (verdict, state.phase, state.stage, state.cut.clone());
    require(found == expected, || {
        format!("started with {found:?} instead of {expected:?}")
    })?;
    let stable = inputs.stable.map(|stable| stable.hash().to_owned());
    require(state.stable == stable, || {
        format!("R2: stable is {:?}, not {stable:?}", state.stable)
    })
}

/// R3.1: the cut moves only when fewer nodes than the stage's size remain before it.
fn cut_moves(inputs: &Inputs<'_>, old: &State, new: &State) -> Checked {
    let size = inputs.stage_size().ok_or("no stage")?;
    let nodes = inputs.rollout_nodes();
    let before = nodes.iter().filter(|name| inputs.is_before(name, &old.cut));
    let wanted = inputs
        .size(size)
        .ok_or("R3.7: a stage by label has no size")?;
    require(before.count() < wanted, || {
        "R3.1: the cut moved although it reaches the stage's size".to_owned()
    })?;
    let cut = inputs.cut_of(size);
    require(new.cut == cut, || format!("R3.1: the cut is {cut:?}"))
}

/// R3.4, as far as it is certain: failures within `max-failures` or accepted by a person may excuse a node.
fn is_complete(inputs: &Inputs<'_>, now: Timestamp) -> Checked {
    let moves = inputs.state().and_then(|state| inputs.moved_cut(state));
    require(moves.is_none(), || {
        format!("R3.1: the cut has to move to {moves:?} first")
    })?;
    let accepted = inputs
        .state()
        .map_or(Accepted::None, |state| state.accepted);
    let strict = inputs.policy.max_failures == IntOrPercent::Int(0) && accepted == Accepted::None;
    if !strict {
        return Ok(());
    }
    let pending = inputs.admitted().into_iter().find(|name| {
        let selected = inputs.target_fit(name).is_some_and(|(run, _)| run);
        let down = inputs.skips_down_nodes() && inputs.readiness(name) != Readiness::Ready;
        let mut here = inputs.daemons_on(name).filter(|daemon| !daemon.leaving);
        let settled = here.any(|daemon| {
            let of_target = inputs.is_of_target(daemon.view);
            of_target && (daemon.available || is_failing(inputs, daemon.view, now))
        });
        selected && !down && !settled
    });
    require(pending.is_none(), || {
        format!("R3.4: {pending:?} is not healthy")
    })
}
