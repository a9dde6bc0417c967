//! Asks the check of a policy at the end of a stage (R7).

use std::time::Duration;

use kennel_types::Monotonic;

use super::super::super::event::{Action, CheckAnswer, CheckRequest, Ticket};
use super::super::Planner;
use crate::ids::SetId;
use crate::rollout::machine::CheckResult;

/// How often an inconclusive check is asked in all, and how long to wait in between.
const TRIES: u32 = 3;
const AGAIN: Duration = Duration::from_mins(1);

/// The check of the present stage.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckProgress {
    pub(super) result: CheckResult,
    asking: Option<Ticket>,
    tries: u32,
    again_at: Monotonic,
}

impl Planner {
    pub(super) fn ask_check(&mut self, set: SetId) {
        let steady = self.steady;
        let ticket = self.next_ticket();
        let known = &mut self.sets[set];
        let daemon_set = known.reference.clone();
        let staged = known.staged.as_deref_mut();
        let staged = staged.expect("only a set with a rollout policy takes steps");
        let check = staged.policy.check.clone();
        let check = check.expect("a step asks for the check that the policy has");
        if staged.check.asking.is_some() {
            return;
        }
        if staged.check.again_at > steady {
            let at = staged.check.again_at;
            return self.wake_rollout(set, at);
        }
        staged.check.asking = Some(ticket);
        staged.check.tries += 1;
        let state = serde_json::to_string(&staged.record.state);
        let request = CheckRequest {
            check,
            revision: staged.target.hash.clone(),
            state: state.expect("its keys are strings"),
        };
        self.actions.push(Action::Check {
            ticket,
            daemon_set,
            request,
        });
    }

    pub(in super::super) fn on_check_finished(&mut self, ticket: Ticket, answer: CheckAnswer) {
        let steady = self.steady;
        let asked = |set: &SetId| {
            let staged = self.sets[*set].staged.as_ref();
            staged.is_some_and(|staged| staged.check.asking == Some(ticket))
        };
        // The stage, the policy or the DaemonSet may be another by now.
        let Some(set) = self.staged_sets.iter().copied().find(asked) else {
            return;
        };
        let mut unclear = None;
        if let Some(staged) = self.sets[set].staged.as_deref_mut() {
            let check = &mut staged.check;
            check.asking = None;
            match answer {
                CheckAnswer::Passed => check.result = CheckResult::Passed,
                CheckAnswer::Failed(message) => check.result = CheckResult::Failed(message),
                CheckAnswer::Inconclusive(message) if check.tries >= TRIES => {
                    check.result = CheckResult::Inconclusive(message);
                }
                CheckAnswer::Inconclusive(message) => {
                    check.again_at = steady + AGAIN;
                    unclear = Some(format!("{message} (try {} of {TRIES})", check.tries));
                }
            }
        }
        if let Some(text) = unclear {
            let reference = self.sets[set].reference.clone();
            self.emit(&reference, true, "CheckInconclusive", text);
        }
        self.mark_for_sync(set);
    }
}
