//! A tracker with a fake API.

use kennel_types::Monotonic;
use serde_json::Value;

use super::super::*;
use super::fake_api::FakeApi;

const BOTH: Forms = Forms {
    slices: true,
    endpoints: true,
};

/// A tracker, its API and its clock.
pub(super) struct Fixture {
    pub(super) tracker: Tracker,
    pub(super) fake_api: FakeApi,
    pub(super) now: Monotonic,
}

impl Fixture {
    pub(super) fn new(limits: Limits) -> Self {
        let mut tracker = Tracker::new(BOTH, limits);
        tracker.node(Monotonic::START, &"n1".into(), Some("z1".into()));
        Self {
            tracker,
            fake_api: FakeApi::default(),
            now: Monotonic::START,
        }
    }

    pub(super) fn of(service: ServiceFacts, pods: impl IntoIterator<Item = PodFacts>) -> Self {
        let mut fixture = Self::new(Limits::default());
        fixture.tracker.service(Monotonic::START, service);
        for pod in pods {
            fixture.tracker.pod(Monotonic::START, pod);
        }
        fixture.converge();
        fixture
    }

    pub(super) fn converge(&mut self) -> Vec<Write> {
        self.fake_api.converge(&mut self.now, &mut self.tracker)
    }

    pub(super) fn pod(&mut self, pod: PodFacts) -> &mut Self {
        self.tracker.pod(self.now, pod);
        self
    }

    pub(super) fn slice(&self) -> &Value {
        assert_eq!(self.fake_api.slices().len(), 1);
        self.fake_api.slices()[0]
    }

    pub(super) fn endpoints(&self) -> &Value {
        assert_eq!(self.fake_api.endpoints().len(), 1);
        self.fake_api.endpoints()[0]
    }

    /// How many endpoints each slice has, largest first.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let slices = self.fake_api.slices();
        let count = |slice: &&Value| slice["endpoints"].as_array().unwrap().len();
        let mut sizes: Vec<usize> = slices.iter().map(count).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes
    }
}

/// The writes as short texts.
pub(super) fn verbs(writes: &[Write]) -> Vec<&'static str> {
    let verb = |write: &Write| match (&write.operation, write.form) {
        (Operation::Create(_), Form::Slice) => "create slice",
        (Operation::Update(_), Form::Slice) => "update slice",
        (Operation::Delete { .. }, Form::Slice) => "delete slice",
        (Operation::Create(_), Form::Endpoints) => "create endpoints",
        (Operation::Update(_), Form::Endpoints) => "update endpoints",
        (Operation::Delete { .. }, Form::Endpoints) => "delete endpoints",
    };
    writes.iter().map(verb).collect()
}
