//! The endpoint slice controller and the endpoints controller: they write what [`kennel_core::endpoints`] decides.
//!
//! Both are one controller because both read the same pods; each writes with the client of its own account.

mod view;
mod writes;

use std::sync::Arc;

use kennel_client::Error;
use kennel_client::clock::Clock;
use kennel_core::endpoints::{
    Forms, Limits, Outcome, PodFacts, ServiceFacts, StoredObject, Tracker, Write,
};
use kennel_core::names::generate_name;
use kennel_types::Monotonic;
use kube::Client;

use crate::frame::{self, Context, Controller, Setup, Update, Watches};
use crate::informers::Informers;

/// The clients to write with. A form without a client is not written.
#[derive(Clone)]
pub struct Clients {
    pub slices: Option<Client>,
    pub endpoints: Option<Client>,
}

enum Event {
    Pod(Update<PodFacts>),
    /// The node's name and zone.
    Node(Update<(Arc<str>, Option<Arc<str>>)>),
    Service(Update<ServiceFacts>),
    Slice(Update<StoredObject>),
    Endpoints(Update<StoredObject>),
}

struct EndpointsController {
    writers: writes::Writers,
    tracker: Tracker,
}

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    clients: Clients,
    informers: &mut Informers,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let forms = Forms {
        slices: clients.slices.is_some(),
        endpoints: clients.endpoints.is_some(),
    };
    let watches = watches(informers, forms);
    let writer = |client| setup.writer(client);
    let controller = EndpointsController {
        writers: writes::Writers {
            slices: clients.slices.map(writer),
            endpoints: clients.endpoints.map(writer),
        },
        tracker: Tracker::new(forms, Limits::default()),
    };
    frame::run(controller, watches, setup)
}

fn watches(informers: &mut Informers, forms: Forms) -> Watches<Event> {
    let mut watches = Watches::default();
    watches.add("pods", informers.pods.subscribe(), |update| {
        Event::Pod(update.map(|pod| view::pod(&pod)))
    });
    watches.add("nodes", informers.nodes.subscribe(), |update| {
        Event::Node(update.map(|node| view::node(&node)))
    });
    watches.add("services", informers.services.subscribe(), |update| {
        Event::Service(update.map(|service| view::service(&service)))
    });
    if forms.slices {
        watches.add(
            "endpointslices",
            informers.endpoint_slices.subscribe(),
            |update| Event::Slice(update.map(|slice| view::stored(&slice))),
        );
    }
    if forms.endpoints {
        watches.add("endpoints", informers.endpoints.subscribe(), |update| {
            Event::Endpoints(update.map(|endpoints| view::stored(&endpoints)))
        });
    }
    watches
}

impl Controller for EndpointsController {
    type Event = Event;
    type Outcome = (Write, Outcome);

    fn name(&self) -> &'static str {
        "endpoints controllers"
    }

    fn handle(&mut self, event: Event, cx: &mut Context<Self>) {
        let (now, tracker) = (cx.now(), &mut self.tracker);
        match event {
            Event::Pod(Update::Applied(pod)) => tracker.pod(now, pod),
            Event::Pod(Update::Gone(id)) => tracker.pod_gone(now, &id.uid),
            Event::Node(Update::Applied((name, zone))) => tracker.node(now, &name, zone),
            Event::Node(Update::Gone(id)) => tracker.node_gone(now, &id.name),
            Event::Service(Update::Applied(service)) => tracker.service(now, service),
            Event::Service(Update::Gone(id)) => tracker.service_gone(now, &id),
            Event::Slice(Update::Applied(slice)) => tracker.slice(now, slice),
            Event::Slice(Update::Gone(id)) => tracker.slice_gone(now, &id),
            Event::Endpoints(Update::Applied(endpoints)) => tracker.endpoints(now, endpoints),
            Event::Endpoints(Update::Gone(id)) => tracker.endpoints_gone(now, &id),
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        let mut name = |prefix: &str| generate_name(prefix, |below| fastrand::usize(..below));
        for write in self.tracker.take_writes(cx.now(), &mut name) {
            let writers = self.writers.clone();
            cx.spawn(async move {
                let outcome = writes::perform(&writers, &write).await;
                (write, outcome)
            });
        }
    }

    fn completed(&mut self, (write, outcome): (Write, Outcome), cx: &mut Context<Self>) {
        self.tracker.write_finished(cx.now(), &write, &outcome);
    }

    fn next_deadline(&self, _: &Clock) -> Option<Monotonic> {
        self.tracker.next_deadline()
    }
}
