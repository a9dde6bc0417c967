//! A tracker with an API beside it, for tests.

use serde_json::Value;

use super::super::*;
use super::api::Api;

const BOTH: Forms = Forms {
    slices: true,
    endpoints: true,
};

/// A tracker, its API, and its clock.
pub(super) struct World {
    pub(super) tracker: Tracker,
    pub(super) api: Api,
    pub(super) now: i64,
}

impl World {
    pub(super) fn new(limits: Limits) -> Self {
        let mut tracker = Tracker::new(BOTH, limits);
        tracker.node(0, &"n1".into(), Some("z1".into()));
        Self {
            tracker,
            api: Api::default(),
            now: 0,
        }
    }

    pub(super) fn of(service: ServiceFacts, pods: impl IntoIterator<Item = PodFacts>) -> Self {
        let mut world = Self::new(Limits::default());
        world.tracker.service(0, service);
        for pod in pods {
            world.tracker.pod(0, pod);
        }
        world.settle();
        world
    }

    pub(super) fn settle(&mut self) -> Vec<Write> {
        self.api.settle(&mut self.now, &mut self.tracker)
    }

    pub(super) fn pod(&mut self, pod: PodFacts) -> &mut Self {
        self.tracker.pod(self.now, pod);
        self
    }

    pub(super) fn slice(&self) -> &Value {
        assert_eq!(self.api.slices().len(), 1);
        self.api.slices()[0]
    }

    pub(super) fn endpoints(&self) -> &Value {
        assert_eq!(self.api.endpoints().len(), 1);
        self.api.endpoints()[0]
    }

    /// How many endpoints each slice has, largest first.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let slices = self.api.slices();
        let count = |slice: &&Value| slice["endpoints"].as_array().unwrap().len();
        let mut sizes: Vec<usize> = slices.iter().map(count).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes
    }
}

/// What the writes do, shortly.
pub(super) fn verbs(writes: &[Write]) -> Vec<&'static str> {
    let verb = |write: &Write| match write.what {
        What::CreateSlice(_) => "create slice",
        What::UpdateSlice(_) => "update slice",
        What::DeleteSlice { .. } => "delete slice",
        What::CreateEndpoints(_) => "create endpoints",
        What::UpdateEndpoints(_) => "update endpoints",
        What::DeleteEndpoints { .. } => "delete endpoints",
    };
    writes.iter().map(verb).collect()
}
