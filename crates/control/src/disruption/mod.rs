//! The disruption controller: keeps the status of disruption budgets, which evictions are charged to.
//!
//! It watches budgets, and pods and DaemonSets from the moment that there is one: a cluster without budgets pays for one
//! watch of nothing.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kennel_client::clock::Clock;
use kennel_client::{Error, api, feed};
use kennel_core::disruption::{PodFacts, Status, Tracker};
use kennel_types::{Identity, Monotonic};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use serde_json::Value;

use crate::frame::status_writes::{Next, StatusWrite, StatusWrites};
use crate::frame::{self, Context, Controller, Setup, Update, Watches};
use crate::informers::Pod;

enum Event {
    Budget(Update<(Identity, Value)>),
    Pod(Update<(Identity, PodFacts)>),
    /// A DaemonSet, with how many pods it wants.
    DaemonSet(Update<(Identity, i64)>),
}

struct Budgets {
    client: Client,
    writes: StatusWrites,
    tracker: Tracker,
    /// Whether pods are watched.
    is_watching: bool,
}

/// Runs until `setup.stop` is cancelled.
pub fn run(client: Client, setup: Setup) -> impl Future<Output = Result<(), Error>> + Send {
    let kind = ApiResource::erase::<PodDisruptionBudget>(&());
    let budgets: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let resource = "poddisruptionbudgets";
    let mut watches = Watches::default();
    watches.add(
        resource,
        feed::watch(budgets, Config::default(), resource),
        |update| {
            Event::Budget(update.map(|budget| {
                let tree = serde_json::to_value(&budget);
                let tree = tree.expect("an object of the API is JSON");
                (Identity::of(&budget.metadata), tree)
            }))
        },
    );
    let controller = Budgets {
        writes: StatusWrites::new("disruption budget", setup.writer(client.clone())),
        client,
        tracker: Tracker::default(),
        is_watching: false,
    };
    frame::run(controller, watches, setup)
}

fn facts(pod: &Pod) -> PodFacts {
    let owners = pod.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    PodFacts {
        name: pod.metadata.name.as_deref().unwrap_or_default().into(),
        labels: pod.metadata.labels.clone().unwrap_or_default(),
        is_ready: pod.status.is_ready(),
        is_deleting: pod.metadata.deletion_timestamp.is_some(),
        controller: controllers.next().map(|owner| owner.uid.as_str().into()),
    }
}

impl Budgets {
    /// Watches what budgets count. Nothing is reconciled until it is listed.
    fn watch(&mut self, cx: &mut Context<Self>) {
        self.is_watching = true;
        let pods: Api<Pod> = Api::all(self.client.clone());
        cx.watch(
            "pods",
            feed::watch(pods, Config::default(), "pods"),
            |update| Event::Pod(update.map(|pod| (Identity::of(&pod.metadata), facts(&pod)))),
        );
        let kind = ApiResource::erase::<DaemonSet>(&());
        let sets: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        cx.watch(
            "daemonsets",
            feed::watch(sets, Config::default(), "daemonsets"),
            |update| {
                Event::DaemonSet(update.map(|set| {
                    let wanted = &set.data["status"]["desiredNumberScheduled"];
                    (Identity::of(&set.metadata), wanted.as_i64().unwrap_or(0))
                }))
            },
        );
    }

    fn write(&self, Status { id, object }: Status, cx: &mut Context<Self>) {
        let path = api::group_path("policy/v1", &id.namespace, "poddisruptionbudgets");
        let path = format!("{path}/{}/status", id.name);
        self.writes.start(id, path, &object, cx);
    }
}

impl Controller for Budgets {
    type Event = Event;
    type Outcome = StatusWrite;

    fn name(&self) -> &'static str {
        "disruption controller"
    }

    fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        match event {
            Event::Budget(Update::Applied((id, object))) => self.tracker.budget(id, object),
            Event::Budget(Update::Gone(id)) => {
                self.tracker.budget_gone(&id.uid);
                self.writes.forget(&id.uid);
            }
            Event::Pod(Update::Applied((id, facts))) => self.tracker.pod(&id, facts),
            Event::Pod(Update::Gone(id)) => self.tracker.pod_gone(&id),
            Event::DaemonSet(Update::Applied((id, wanted))) => self.tracker.controller(&id, wanted),
            Event::DaemonSet(Update::Gone(id)) => self.tracker.controller_gone(&id),
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        if !self.is_watching && !self.tracker.is_empty() {
            self.watch(cx);
        }
        if !cx.is_synced() {
            return;
        }
        for status in self.tracker.take(cx.timestamp()) {
            self.write(status, cx);
        }
    }

    fn completed(&mut self, outcome: StatusWrite, cx: &mut Context<Self>) {
        match self.writes.completed(outcome, cx) {
            Some(Next::Rest(uid)) => self.tracker.written(&uid),
            Some(Next::Repeat(uid)) => self.tracker.failed(&uid),
            None => {}
        }
    }

    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        self.tracker.next_deadline().map(|at| clock.when(at))
    }
}
