//! What the status of a DaemonSet with a rollout policy says (R9.1).

use super::{Staged, Standing};
use crate::rollout::condition::{Conditions, conditions};
use crate::rollout::state::Phase;

impl Staged {
    /// The conditions that the status should have. Pause and freeze without a policy have none (R1.4).
    pub(super) fn current_conditions(&self) -> Conditions {
        if !self.has_policy {
            return Conditions::new();
        }
        if let Some(freeze) = &self.commands.freeze {
            return conditions(false, true, "Frozen", freeze);
        }
        if let Some(error) = &self.invalid {
            return conditions(false, true, "PolicyInvalid", &error.to_string());
        }
        let hash = &self.target.hash;
        let Some(state) = self.state() else {
            return match self.standing {
                Standing::Direct => {
                    conditions(false, false, "Complete", &format!("{hash} is stable"))
                }
                Standing::Back => {
                    conditions(false, true, "RolledBack", &format!("{hash} has failed"))
                }
                Standing::Unstarted | Standing::Staged => conditions(
                    true,
                    false,
                    "Starting",
                    &format!("{hash} is about to be rolled out"),
                ),
            };
        };
        if self.standing == Standing::Direct {
            return conditions(false, false, "Complete", &format!("{hash} is stable"));
        }
        let stage = self.stage_text(state.stage);
        let why = state.reason.as_ref();
        let code = why.map_or("", |reason| &reason.code);
        let why = why.map_or("", |reason| &reason.message);
        let text = format!("{hash}: {stage}");
        match (state.phase, &self.commands.pause) {
            (Phase::Updating | Phase::Baking, Some(pause)) => {
                conditions(false, false, "Paused", &format!("{text}: {pause}"))
            }
            (Phase::Updating, None) => {
                let wait = self.budget_wait.as_ref();
                let wait = wait.map_or_else(String::new, |wait| format!("; waits: {wait}"));
                conditions(true, false, "Updating", &format!("{text}{wait}"))
            }
            (Phase::Baking, None) => conditions(true, false, "Baking", &text),
            (Phase::AwaitingPromotion, _) => {
                let reason = if code.is_empty() {
                    "AwaitingPromotion"
                } else {
                    code
                };
                conditions(true, false, reason, &join(&text, why))
            }
            (Phase::Paused, _) => {
                let reason = match code {
                    "DeadlineExceeded" => code,
                    _ => "PausedOnFailure",
                };
                conditions(false, true, reason, &join(&text, why))
            }
            (Phase::RollingBack, _) => conditions(true, false, "RollingBack", &join(&text, why)),
            (Phase::Held, _) => conditions(false, true, "RolledBack", &join(&text, why)),
            (Phase::Complete, _) => conditions(false, false, "Complete", &text),
        }
    }
}

fn join(text: &str, why: &str) -> String {
    if why.is_empty() {
        text.to_owned()
    } else {
        format!("{text}: {why}")
    }
}
