//! The endpoint slice controller and the endpoints controller: they write what
//! [`kennel_core::endpoints`] decides. Both are one task, because both look at the same pods; each writes
//! with a client of its own.

mod act;
mod view;

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::Writer;
use kennel_client::{Error, clock};
use kennel_core::endpoints::{
    Forms, Limits, Outcome, PodFacts, ServiceFacts, Shell, Stored, Tracker, Write,
};
use kennel_core::names::generate_name;
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::informers::Informers;

/// With what to write. A form without a client is left alone.
#[derive(Clone)]
pub struct Clients {
    /// Slices.
    pub slices: Option<Client>,
    /// Endpoints.
    pub endpoints: Option<Client>,
}

enum Seen {
    Pod(Change<PodFacts>),
    Node(Change<(Arc<str>, Option<Arc<str>>)>),
    Service(Change<ServiceFacts>),
    Slice(Change<Stored>),
    Endpoints(Change<Stored>),
}

struct Controller {
    writers: act::Writers,
    tracker: Tracker,
    work: Work<(Write, Outcome)>,
    /// Kinds that have not all been seen yet.
    unsynced: usize,
    /// The time is measured from here: a calendar that is put back would hold up all that waits.
    began: Instant,
}

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    clients: Clients,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let forms = Forms {
        slices: clients.slices.is_some(),
        endpoints: clients.endpoints.is_some(),
    };
    let seen = watches(informers, forms);
    let writer = |client| Writer::new(client, Fence::open());
    let controller = Controller {
        writers: act::Writers {
            slices: clients.slices.map(writer),
            endpoints: clients.endpoints.map(writer),
        },
        tracker: Tracker::new(forms, Limits::default()),
        work: Work::new(WRITES_AT_ONCE),
        unsynced: seen.len(),
        began: Instant::now(),
    };
    controller.run(stream::select_all(seen).boxed(), stop)
}

fn watches(informers: &mut Informers, forms: Forms) -> Vec<BoxStream<'static, Seen>> {
    let pods = informers
        .pods()
        .map(|c| Seen::Pod(c.map(|pod| view::pod(&pod))));
    let nodes = informers.nodes();
    let nodes = nodes.map(|c| Seen::Node(c.map(|node| view::node(&node))));
    let services = informers.services();
    let services = services.map(|c| Seen::Service(c.map(|service| view::service(&service))));
    let mut seen = vec![pods.boxed(), nodes.boxed(), services.boxed()];
    if forms.slices {
        let slices = informers.endpoint_slices();
        let slices = slices.map(|c| Seen::Slice(c.map(|slice| view::stored(&slice))));
        seen.push(slices.boxed());
    }
    if forms.endpoints {
        let endpoints = informers.endpoints();
        let endpoints = endpoints.map(|c| Seen::Endpoints(c.map(|e| view::stored(&e))));
        seen.push(endpoints.boxed());
    }
    seen
}

impl Controller {
    async fn run(
        mut self,
        mut seen: BoxStream<'static, Seen>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        tracing::info!("endpoints controllers started");
        loop {
            let deadline = self.tracker.next_deadline().filter(|_| self.unsynced == 0);
            tokio::select! {
                () = stop.cancelled() => break,
                change = seen.next() => match change {
                    Some(change) => self.saw(change),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("services and pods")),
                },
                (write, outcome) = self.work.next() => {
                    self.tracker.ended(self.now(), &write, &outcome);
                }
                () = sleep_until(self.began, deadline) => self.act(),
            }
        }
        self.work.finish().await;
        tracing::info!("endpoints controllers stopped");
        Ok(())
    }

    /// In milliseconds since the beginning.
    fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn saw(&mut self, seen: Seen) {
        let (now, tracker) = (self.now(), &mut self.tracker);
        match seen {
            Seen::Pod(Change::Applied(pod)) => tracker.pod(now, pod),
            Seen::Pod(Change::Gone(id)) => tracker.pod_gone(now, &id.uid),
            Seen::Node(Change::Applied((name, zone))) => tracker.node(now, &name, zone),
            Seen::Node(Change::Gone(id)) => tracker.node_gone(now, &id.name),
            Seen::Service(Change::Applied(service)) => tracker.service(now, service),
            Seen::Service(Change::Gone(id)) => {
                tracker.service_gone(now, &id.namespace, &id.name, &id.uid);
            }
            Seen::Slice(Change::Applied(slice)) => tracker.slice(now, slice),
            Seen::Slice(Change::Gone(id)) => {
                tracker.slice_gone(now, &id.namespace, &id.name, &id.uid);
            }
            Seen::Endpoints(Change::Applied(endpoints)) => tracker.endpoints(now, endpoints),
            Seen::Endpoints(Change::Gone(id)) => {
                tracker.endpoints_gone(now, &id.namespace, &id.name, &id.uid);
            }
            Seen::Pod(Change::Synced)
            | Seen::Node(Change::Synced)
            | Seen::Service(Change::Synced)
            | Seen::Slice(Change::Synced)
            | Seen::Endpoints(Change::Synced) => self.unsynced = self.unsynced.saturating_sub(1),
        }
    }

    fn act(&mut self) {
        let mut shell = Shell {
            name: &mut |prefix| generate_name(prefix, |below| fastrand::usize(..below)),
            time: clock::rfc3339,
        };
        for write in self.tracker.take(self.now(), &mut shell) {
            let writers = self.writers.clone();
            self.work.push(async move {
                let outcome = act::carry_out(&writers, &write).await;
                (write, outcome)
            });
        }
    }
}

/// Sleeps until so many milliseconds after the beginning; for ever if there is no such time.
async fn sleep_until(began: Instant, at: Option<i64>) {
    match at {
        Some(at) => {
            let after = Duration::from_millis(u64::try_from(at).unwrap_or(0));
            tokio::time::sleep_until(began + after).await;
        }
        None => std::future::pending().await,
    }
}
