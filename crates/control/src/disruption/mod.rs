//! The disruption controller: keeps the status of disruption budgets, which evictions are charged to.
//!
//! It watches budgets, and pods and DaemonSets from the moment that there is one: a cluster without budgets pays for one
//! watch of nothing.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kennel_client::backoff::{Failures, Policy};
use kennel_client::clock::Clock;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Writer};
use kennel_client::{Error, api, feed};
use kennel_core::disruption::{PodFacts, Status, Tracker};
use kennel_types::{Identity, Monotonic};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::frame::{self, Context, Controller, Update, Watches};
use crate::informers::Pod;

/// Before a status whose write failed is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(10));

enum Event {
    Budget(Update<(Identity, Value)>),
    Pod(Update<(Identity, PodFacts)>),
    /// A DaemonSet, with how many pods it wants.
    DaemonSet(Update<(Identity, i64)>),
}

enum Outcome {
    /// The budget's uid, and whether its status was written.
    Written(Arc<str>, bool),
    RetryDue(Arc<str>),
}

struct Budgets {
    client: Client,
    writer: Writer,
    tracker: Tracker,
    /// Whether pods are watched.
    is_watching: bool,
    /// By uid.
    failures: Failures<Arc<str>>,
}

/// Runs until `stop` is cancelled.
pub fn run(
    client: Client,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send {
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
        writer: Writer::new(client.clone(), Fence::open()),
        client,
        tracker: Tracker::default(),
        is_watching: false,
        failures: Failures::new(RETRY),
    };
    frame::run(controller, watches, stop)
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

    fn write(&self, status: Status, cx: &mut Context<Self>) {
        let writer = self.writer.clone();
        cx.spawn(async move {
            let Identity {
                namespace,
                name,
                uid,
            } = status.id;
            let path = api::group_path("policy/v1", &namespace, "poddisruptionbudgets");
            let call = Call::replace(format!("{path}/{name}/status"), &status.object);
            match writer.send(&call).await {
                // Its deletion or newer version arrives as an event.
                Ok(_) => Outcome::Written(uid, true),
                Err(failure) if failure.is(404) || failure.is(409) => Outcome::Written(uid, true),
                Err(failure) => {
                    tracing::warn!(
                        "writing the status of disruption budget {namespace}/{name} failed: {failure}"
                    );
                    Outcome::Written(uid, false)
                }
            }
        });
    }
}

impl Controller for Budgets {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "disruption controller"
    }

    fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        match event {
            Event::Budget(Update::Applied((id, object))) => self.tracker.budget(id, object),
            Event::Budget(Update::Gone(id)) => {
                self.tracker.budget_gone(&id.uid);
                self.failures.reset(&id.uid);
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

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Written(uid, true) => {
                self.failures.reset(&uid);
                self.tracker.written(&uid);
            }
            Outcome::Written(uid, false) => {
                let delay = self.failures.next_delay(uid.clone());
                cx.after(delay, Outcome::RetryDue(uid));
            }
            Outcome::RetryDue(uid) => self.tracker.failed(&uid),
        }
    }

    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        self.tracker.next_deadline().map(|at| clock.when(at))
    }
}
