//! What the simulated nodes know and do: one change, result or heartbeat at a time.
//!
//! The loop that feeds it is next door; what comes next in a pod's life is for
//! [`stages`](crate::stages) to say.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kennel_client::feed::Change;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::{api, clock};
use kube::Client;
use kube::api::DynamicObject;
use tokio::sync::watch;

use super::address::{self, Pool};
use super::pod::{self, SimulatedPod};
use super::{RETRY, Simulation, machine};
use crate::stages::{self, Step};

struct Machine {
    number: u32,
    /// Uid of its Node object, once it is registered.
    uid: Option<Arc<str>>,
    pool: Pool,
}

/// How a piece of work ended.
pub(super) enum Outcome {
    Registered {
        name: Arc<str>,
        uid: Option<String>,
    },
    RegisterAgain(Arc<str>),
    Renewed,
    /// The time for a pod's next step has come (by uid).
    Due(Arc<str>, Step),
    Taken {
        pod: Arc<str>,
        done: bool,
    },
    TakeAgain(Arc<str>),
}

/// All the nodes of the process, and their pods.
pub(super) struct World {
    /// Makes the client of a node.
    client_of: Box<dyn Fn(&str) -> Client + Send>,
    simulation: Simulation,
    /// How many nodes are registered.
    registered: watch::Sender<u32>,
    machines: BTreeMap<Arc<str>, Machine>,
    /// By uid.
    pods: BTreeMap<Arc<str>, SimulatedPod>,
    /// The watch has delivered all there was: addresses in use are known.
    synced: bool,
    pub(super) work: Work<Outcome>,
    /// The node that renewed its lease last.
    renewed: Option<Arc<str>>,
}

impl World {
    pub(super) fn new(
        client_of: Box<dyn Fn(&str) -> Client + Send>,
        simulation: &Simulation,
        registered: watch::Sender<u32>,
    ) -> Self {
        let mut world = Self {
            client_of,
            simulation: simulation.clone(),
            registered,
            machines: BTreeMap::new(),
            pods: BTreeMap::new(),
            synced: false,
            work: Work::new(WRITES_AT_ONCE),
            renewed: None,
        };
        for number in simulation.numbers() {
            let name: Arc<str> = simulation.name(number).into();
            let pool = Pool::new(number);
            let uid = None;
            world
                .machines
                .insert(name.clone(), Machine { number, uid, pool });
            world.register(name);
        }
        world
    }

    fn register(&mut self, name: Arc<str>) {
        let Some(number) = self.machines.get(&name).map(|machine| machine.number) else {
            return;
        };
        let client = (self.client_of)(&name);
        let object = machine::node(&self.simulation, number, &clock::now_rfc3339());
        self.work.push(async move {
            let registered = machine::register(&client, &object).await;
            let complain = |error: &kube::Error| {
                tracing::warn!("registering node {name} failed: {}", api::explain(error));
            };
            let uid = registered.inspect_err(complain).ok();
            Outcome::Registered { name, uid }
        });
    }

    pub(super) fn renew_next(&mut self) {
        let after = match &self.renewed {
            Some(last) => (Bound::Excluded(last.clone()), Bound::Unbounded),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let following = self.machines.range(after).next();
        let next = following.or_else(|| self.machines.first_key_value());
        if let Some(name) = next.map(|(name, _)| name.clone()) {
            self.renewed = Some(name.clone());
            self.renew(name);
        }
    }

    fn renew(&mut self, name: Arc<str>) {
        let uid = self
            .machines
            .get(&name)
            .and_then(|machine| machine.uid.clone());
        let Some(uid) = uid else {
            return;
        };
        let client = (self.client_of)(&name);
        self.work.push(async move {
            if let Err(error) = machine::renew(&client, &name, &uid).await {
                let why = api::explain(&error);
                tracing::warn!("renewing the lease of node {name} failed: {why}");
            }
            Outcome::Renewed
        });
    }

    pub(super) fn saw(&mut self, change: Change<DynamicObject>) {
        match change {
            Change::Applied(object) => self.pod(&object),
            Change::Gone(id) => self.pod_gone(&id.uid),
            Change::Synced => {
                self.synced = true;
                let all: Vec<_> = self.pods.keys().cloned().collect();
                for uid in all {
                    self.plan(&uid);
                }
            }
        }
    }

    fn pod(&mut self, object: &DynamicObject) {
        let Some(mut pod) = SimulatedPod::read(object) else {
            return;
        };
        let Some(machine) = self.machines.get_mut(&pod.node) else {
            return;
        };
        let uid = pod.id.uid.clone();
        if let Some(before) = self.pods.get(&uid) {
            let same = std::mem::discriminant(&before.stage) == std::mem::discriminant(&pod.stage);
            pod.taking = before.taking.filter(|_| same);
            pod.address = pod.address.or(before.address);
        }
        if let Some(address) = pod.address {
            machine.pool.keep(address);
        }
        self.pods.insert(uid.clone(), pod);
        self.plan(&uid);
    }

    fn pod_gone(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else {
            return;
        };
        if let Some((machine, address)) = self.machines.get_mut(&pod.node).zip(pod.address) {
            machine.pool.release(address);
        }
    }

    /// Takes the next step of a pod's life, or waits for its time.
    fn plan(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(uid).filter(|_| self.synced) else {
            return;
        };
        let Some((delay, step)) = stages::next(pod.stage, self.simulation.life) else {
            return;
        };
        if pod.taking == Some(step) {
            return;
        }
        pod.taking = Some(step);
        if delay.is_zero() {
            self.take(uid);
        } else {
            self.work.later(delay, Outcome::Due(uid.clone(), step));
        }
    }

    fn take(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let (Some(step), Some(machine)) = (pod.taking, self.machines.get_mut(&pod.node)) else {
            return;
        };
        let client = (self.client_of)(&pod.node);
        let (id, pod_uid) = (pod.id.clone(), uid.clone());
        match step {
            Step::Start => {
                let host = address::of_node(machine.number);
                if pod.host_network {
                    pod.address = Some(host);
                }
                pod.address = pod.address.or_else(|| machine.pool.take());
                let status = pod.started(host, &pod::now());
                self.work.push(async move {
                    let done = worked(
                        pod::start(&client, &id, &status).await,
                        "starting",
                        &id.name,
                    );
                    Outcome::Taken { pod: pod_uid, done }
                });
            }
            Step::Remove => self.work.push(async move {
                let done = worked(pod::remove(&client, &id).await, "removing", &id.name);
                Outcome::Taken { pod: pod_uid, done }
            }),
        }
    }

    pub(super) fn ended(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Registered {
                name,
                uid: Some(uid),
            } => {
                if let Some(machine) = self.machines.get_mut(&name) {
                    let before = machine.uid.replace(uid.into());
                    let new = u32::from(before.is_none());
                    self.registered.send_modify(|count| *count += new);
                }
                self.renew(name);
            }
            Outcome::Registered { name, uid: None } => {
                self.work.later(RETRY, Outcome::RegisterAgain(name));
            }
            Outcome::RegisterAgain(name) => self.register(name),
            Outcome::Renewed | Outcome::Taken { done: true, .. } => {}
            Outcome::Due(uid, step) => self.due(&uid, step),
            Outcome::Taken { pod, done: false } => {
                self.work.later(RETRY, Outcome::TakeAgain(pod));
            }
            Outcome::TakeAgain(uid) => {
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.taking = None;
                }
                self.plan(&uid);
            }
        }
    }

    /// The delay before a step is over: take it, if it still is the next.
    fn due(&mut self, uid: &Arc<str>, step: Step) {
        let taking = self.pods.get(uid).and_then(|pod| pod.taking);
        if taking == Some(step) {
            self.take(uid);
        }
    }
}

/// A pod that is gone needs nothing more.
fn worked(result: Result<(), kube::Error>, what: &str, name: &str) -> bool {
    match result {
        Err(error) if api::code(&error) != Some(404) => {
            tracing::warn!(
                "{what} simulated pod {name} failed: {}",
                api::explain(&error)
            );
            false
        }
        _ => true,
    }
}
