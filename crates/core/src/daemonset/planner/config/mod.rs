//! Config that belongs to the version (R10): which data the target's revision has, and the copies of ConfigMaps that each
//! revision owns.
//!
//! ```text
//!   ConfigMaps of namespaces with `pin-config` ─▶ table (hashes of contents, no contents)
//!   table, template, revisions ─▶ the target's data (rollout::config::choose)
//!   table, target, stable ─▶ copies to make; the rollout starts when the target's are there
//! ```

mod copies;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Monotonic;
use serde_json::Value;

use super::super::event::ConfigEvent;
use super::super::expectation::Expectation;
use super::super::history::Revision;
use super::super::view::ConfigMapView;
use super::Planner;
use super::timers::Recheck;
use crate::ids::SetId;
use crate::rollout::PREFIX;
use crate::rollout::config::{self, Choice, References, Waits};
use crate::rollout::policy::Setting;
pub(super) use table::ConfigTable;

/// Config counts as changed when it has not changed for so long: one that is applied as several ConfigMaps is one
/// revision.
const SETTLE: Duration = Duration::from_secs(2);
/// After so long an event says that the ConfigMaps of a namespace are not known: the controller may lack the rights.
const REPORT_UNKNOWN_AFTER: Duration = Duration::from_secs(10);

/// What the planner keeps of a DaemonSet whose config is pinned.
#[derive(Debug)]
pub(super) struct Pins {
    /// The template that the references are of.
    template: Arc<Value>,
    pub(super) references: References,
    /// Since when the ConfigMaps of the namespace are unknown.
    unknown_since: Option<Monotonic>,
    /// Why there is no revision, as an event has said.
    told: Option<Waits>,
    /// Copies whose content exists no more, as an event has said.
    lost: BTreeSet<String>,
    /// Copies that are being made or could not be made, by name.
    copies: BTreeMap<Arc<str>, Expectation>,
}

impl Pins {
    fn new(template: Arc<Value>, unknown_since: Monotonic) -> Self {
        Self {
            references: config::references(&template),
            template,
            unknown_since: Some(unknown_since),
            told: None,
            lost: BTreeSet::new(),
            copies: BTreeMap::new(),
        }
    }
}

impl Planner {
    /// The namespaces whose ConfigMaps the planner has to know.
    pub fn config_namespaces(&self) -> BTreeSet<Arc<str>> {
        let sets = self.pinning_sets.iter();
        sets.filter_map(|set| self.sets.get(*set))
            .map(|set| set.reference.namespace.clone())
            .collect()
    }

    pub(super) fn on_config(&mut self, event: ConfigEvent) {
        match event {
            ConfigEvent::Applied(view) => self.on_config_map(view),
            ConfigEvent::Gone { namespace, name } => {
                self.config_maps.remove(&namespace, &name);
                self.mark_pinning(&namespace, |_| true);
            }
            ConfigEvent::Synced(namespace) => {
                self.config_maps.synced(&namespace);
                self.mark_pinning(&namespace, |_| true);
            }
            ConfigEvent::Closed(namespace) => self.config_maps.close(&namespace),
        }
    }

    fn on_config_map(&mut self, view: ConfigMapView) {
        let (namespace, name) = (view.namespace.clone(), view.name.clone());
        let is_copy = view.owner.is_some();
        if self.config_maps.put(view, self.steady) {
            self.mark_pinning(&namespace, |pins| {
                is_copy || pins.references.config_maps.contains_key(&*name)
            });
        }
    }

    fn mark_pinning(&mut self, namespace: &str, which: impl Fn(&Pins) -> bool) {
        for set in self.pinning_sets.clone() {
            let known = &self.sets[set];
            if *known.reference.namespace == *namespace && known.pins.as_deref().is_some_and(&which)
            {
                self.mark_history(set);
            }
        }
    }

    /// The data of the target's revision; `None` while there can be none.
    pub(super) fn target_data(&mut self, set: SetId, claimed: &[Revision]) -> Option<Arc<str>> {
        self.update_pins(set);
        let known = &self.sets[set];
        let (live, settled) = match &known.pins {
            Some(pins) => self.live_config(&known.reference.namespace, &pins.references),
            None => (Err(Waits::Unknown), None),
        };
        let choice = Choice {
            template: &known.view.template,
            data: &known.history.template_data,
            pins: known
                .pins
                .as_ref()
                .is_some_and(|pins| !pins.references.config_maps.is_empty()),
            live: live.as_deref(),
            settled: settled.is_none_or(|at| at <= self.steady),
            revisions: claimed,
        };
        let chosen = config::choose(&choice);
        if let Some(at) = settled.filter(|at| *at > self.steady) {
            self.recheck_history_steady(set, at);
        }
        match chosen {
            Ok(data) => {
                let known = &mut self.sets[set];
                known.history.retarget(&data);
                if let Some(pins) = &mut known.pins {
                    pins.told = None;
                }
                Some(data)
            }
            Err(waits) => {
                self.emit_missing_config(set, &waits);
                None
            }
        }
    }

    /// Reads whether config is pinned.
    fn update_pins(&mut self, set: SetId) {
        let pins = self.pins_config(set);
        let steady = self.steady;
        let known = &mut self.sets[set];
        if !pins {
            if known.pins.take().is_some() {
                self.pinning_sets.remove(&set);
            }
            return;
        }
        let template = known.view.template.clone();
        match &mut known.pins {
            Some(pins) if *pins.template == *template => {}
            Some(pins) => {
                pins.references = config::references(&template);
                pins.template = template;
            }
            None => {
                known.pins = Some(Box::new(Pins::new(template, steady)));
                self.pinning_sets.insert(set);
            }
        }
    }

    fn pins_config(&self, set: SetId) -> bool {
        let known = &self.sets[set];
        let defaults = self.namespaces.get(&known.reference.namespace);
        let key = format!("{PREFIX}pin-config");
        let own = known.view.annotations.get(&key);
        let default = defaults.and_then(|defaults| defaults.get(&key));
        if own.is_none() && default.is_none() {
            return false;
        }
        let none = BTreeMap::new();
        match Setting::parse(&known.view.annotations, defaults.unwrap_or(&none)) {
            Setting::Policy(policy) => policy.pin_config,
            // Another key is unreadable: that must not change what pods are made of.
            Setting::Invalid(_) => {
                known.pins.is_some() || own.or(default).is_some_and(|v| v == "true")
            }
            Setting::Absent | Setting::Off => false,
        }
    }

    /// The hash of the config that a template names, and from when on it counts as settled.
    fn live_config(
        &self,
        namespace: &str,
        references: &References,
    ) -> (Result<String, Waits>, Option<Monotonic>) {
        let Some(table) = self.config_maps.of(namespace) else {
            return (Err(Waits::Unknown), None);
        };
        let missing = |(name, needed): &(&String, &bool)| **needed && table.get(name).is_none();
        if let Some((name, _)) = references.config_maps.iter().find(missing) {
            return (Err(Waits::Missing(name.clone())), None);
        }
        let contents = references.config_maps.keys();
        let contents =
            contents.map(|name| (name.as_str(), table.get(name).map(|map| &*map.view.hash)));
        let changed = references.config_maps.keys();
        let changed = changed.filter_map(|name| table.get(name)?.changed);
        let settles = changed.max().map(|at| at + SETTLE);
        (Ok(config::config_hash(contents)), settles)
    }

    fn recheck_history_steady(&mut self, set: SetId, at: Monotonic) {
        let serial = self.sets[set].serial;
        self.steady_timers.at(at, Recheck::History(set, serial));
    }

    /// Says once why there is no revision of the template.
    fn emit_missing_config(&mut self, set: SetId, waits: &Waits) {
        let steady = self.steady;
        let known = &mut self.sets[set];
        let reference = known.reference.clone();
        let pins = known.pins.as_mut();
        let pins = pins.expect("only what is pinned waits for config");
        if *waits == Waits::Unknown {
            let since = *pins.unknown_since.get_or_insert(steady);
            if steady < since + REPORT_UNKNOWN_AFTER {
                return self.recheck_history_steady(set, since + REPORT_UNKNOWN_AFTER);
            }
        }
        if pins.told.as_ref() != Some(waits) {
            pins.told = Some(waits.clone());
            let text = format!("Nothing is done for the new template: {waits}");
            self.emit(&reference, true, "ConfigMissing", text);
        }
    }
}
