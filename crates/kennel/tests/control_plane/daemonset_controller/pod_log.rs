//! Records the life of a DaemonSet's pods through a watch that does not break.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};

/// A pod's node and image.
type Known = (String, String);

#[derive(Default)]
struct State {
    /// Every pod that ever was, by uid.
    ever: BTreeMap<String, Known>,
    /// Those that are there and not on their way out.
    active: BTreeMap<String, Known>,
    /// The most that ever were on one node at once.
    crowded: usize,
}

/// See the [module](self). Copies share their state.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<State>>);

impl Ledger {
    /// Watches from now on.
    pub(crate) fn open(client: Client) -> Self {
        let ledger = Self::default();
        let copy = ledger.clone();
        tokio::spawn(async move {
            let pods: Api<Pod> = Api::default_namespaced(client);
            let mut events = std::pin::pin!(watcher(pods, watcher::Config::default()));
            while let Some(event) = events.next().await {
                copy.note(event.expect("this watch does not break"));
            }
        });
        ledger
    }

    fn note(&self, event: Event<Pod>) {
        let mut state = self.0.lock().unwrap();
        match event {
            Event::Apply(pod) | Event::InitApply(pod) => {
                let (uid, known) = (pod.uid().unwrap(), known(&pod));
                state.ever.insert(uid.clone(), known.clone());
                if pod.metadata.deletion_timestamp.is_some() {
                    state.active.remove(&uid);
                } else {
                    state.active.insert(uid, known);
                }
            }
            Event::Delete(pod) => {
                state.active.remove(&pod.uid().unwrap());
            }
            Event::Init | Event::InitDone => {}
        }
        let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
        for (node, _) in state.active.values() {
            *nodes.entry(node).or_default() += 1;
        }
        let most = nodes.values().copied().max().unwrap_or(0);
        state.crowded = state.crowded.max(most);
    }

    /// How many pods there ever were with this image.
    pub(crate) fn ever(&self, image: &str) -> usize {
        let state = self.0.lock().unwrap();
        state.ever.values().filter(|(_, of)| of == image).count()
    }

    /// The most pods that ever were on one node at once, not on their way out.
    pub(crate) fn crowded(&self) -> usize {
        self.0.lock().unwrap().crowded
    }
}

/// The node that a pod is bound to, or else pinned to, and its image.
pub(crate) fn known(pod: &Pod) -> Known {
    let spec = pod.spec.as_ref().unwrap();
    let pin = || {
        let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
        let required = affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()?;
        let fields = required
            .node_selector_terms
            .first()?
            .match_fields
            .as_ref()?;
        fields.first()?.values.as_ref()?.first().cloned()
    };
    let node = spec.node_name.clone().filter(|name| !name.is_empty());
    let image = spec.containers[0].image.clone().unwrap_or_default();
    (node.or_else(pin).unwrap(), image)
}
