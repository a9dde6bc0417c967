//! Stable's revision: which one it is (R2), and what its pods are made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::fit::Rules;
use super::super::super::history::Revision;
use super::super::super::pod::Blueprint;
use super::super::super::view::DaemonSetView;
use super::super::Planner;
use super::super::sets::ActiveRevision;
use super::{Stable, Standing};
use crate::ids::SetId;
use crate::rollout::stable;
use crate::rollout::state::Record;

impl Planner {
    /// The revision to drive other nodes to (R2).
    pub(super) fn find_stable(
        &mut self,
        set: SetId,
        record: &Record,
        standing: Standing,
        target: &Revision,
        claimed: &[Revision],
    ) -> Option<Revision> {
        let by_hash = |hash: &str| claimed.iter().find(|r| r.hash() == hash).cloned();
        match (&record.state, standing) {
            (_, Standing::Direct) => None,
            (Some(state), Standing::Staged | Standing::Back) => {
                state.stable.as_deref().and_then(by_hash)
            }
            _ => {
                let hash = self.stable_hash(set, target, claimed)?;
                by_hash(&hash).filter(|revision| revision.uid != target.uid)
            }
        }
    }

    /// The hash of stable for a rollout that starts now.
    pub(super) fn stable_hash(
        &mut self,
        set: SetId,
        target: &Revision,
        claimed: &[Revision],
    ) -> Option<Arc<str>> {
        let known = &self.sets[set];
        let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
        for revision in claimed {
            let symbol = self.symbols.intern(Some(revision.hash()));
            let count = known.hash_uses.get(&symbol).copied().unwrap_or(0);
            pods.insert(revision.hash(), count as usize);
        }
        let claimed: Vec<&Revision> = claimed.iter().collect();
        let pods = |hash: &str| pods.get(hash).copied().unwrap_or(0);
        stable::hash(&known.reference.uid, Some(target), &claimed, pods).map(Into::into)
    }

    pub(super) fn stable(&mut self, set: SetId, revision: &Revision) -> Option<Stable> {
        let template = revision.template()?;
        let known = &self.sets[set];
        let target = known.active.as_ref()?;
        let (mode, min_ready) = (target.mode, target.min_ready);
        let view = DaemonSetView {
            template: Arc::new(template),
            template_generation: revision.template_generation,
            ..known.view.clone()
        };
        let generation = revision
            .template_generation
            .map(|number| number.to_string());
        let hash: Arc<str> = revision.hash().into();
        Some(Stable {
            rules: Rules::of_template(&view.template, self.adds_toleration()),
            active: ActiveRevision {
                mode,
                min_ready,
                hash: self.symbols.intern(Some(&hash)),
                generation: self.symbols.intern(generation.as_deref()),
                blueprint: Arc::new(Blueprint::staged(&view, &hash, self.additions())),
            },
            hash,
        })
    }
}
