//! What the simulated nodes know and do: one change, result or heartbeat at a time.
//!
//! The loop that feeds it is above; what comes next in a pod's life is for [`stages`](crate::stages) to
//! say, and what happens to whom for the [`scenario`](crate::scenario). Nodes are in
//! [`nodes`], pods in [`pods`].

mod nodes;
mod ordinals;
mod pods;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::Writer;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Simulation;
use super::address::Pool;
use super::pod::{Make, Shown, SimulatedPod};
use super::shape;
use crate::dice::Dice;
use crate::scenario::OutageKind;
use crate::stages::Stage;

/// How long to wait after a write has failed.
const RETRY: Duration = Duration::from_secs(1);

/// A node.
struct Machine {
    number: u32,
    /// Uid of its Node object, while there is one.
    uid: Option<Arc<str>>,
    /// It is being registered, so that a Node object that is not there is no news.
    registering: bool,
    /// It has been registered once.
    known: bool,
    /// A heartbeat is under way: the next one need not wait behind it.
    renewing: bool,
    /// A report on itself is under way.
    reporting: bool,
    /// There was more to report meanwhile.
    more: bool,
    /// Why it is not heard of.
    dark: Option<OutageKind>,
    /// Its present boot, if known.
    boot_id: Box<str>,
    pool: Pool,
    /// Uids of its pods.
    pods: Vec<Arc<str>>,
    /// How many pods of which owner it has had.
    ordinals: Vec<(u64, u32)>,
}

/// How a piece of work ended.
pub(super) enum Outcome {
    /// Which node, whether it has booted, and the uid if that worked.
    Registered(usize, bool, Option<String>),
    RegisterAgain(usize, bool),
    /// A heartbeat of this node has come to its end, whatever became of it.
    Renewed(usize),
    /// A node has told how it is; whether that worked, and whether it is still there.
    Reported(usize, Told),
    ReportAgain(usize),
    /// The time for a pod's next stage has come, unless it has left the one it was in.
    Due {
        pod: Arc<str>,
        turn: u32,
        stage: Stage,
    },
    Written {
        pod: Arc<str>,
        told: Told,
        shown: Option<Shown>,
    },
    WriteAgain(Arc<str>),
    Dark(usize, OutageKind, Duration),
    Light(usize, Duration),
}

/// What came of telling the API something.
#[derive(Clone, Copy)]
pub(super) enum Told {
    /// It knows; the version that this made.
    Known(u64),
    /// What it was about is gone.
    Gone,
    Failed,
}

/// All the nodes of the process, and their pods.
pub(super) struct World {
    /// Makes the client of a node.
    client_of: Box<dyn Fn(&str) -> Client + Send>,
    fence: Fence,
    simulation: Simulation,
    /// How many nodes have been registered.
    registered: watch::Sender<u32>,
    began: Instant,
    /// By their number, beginning with the first.
    machines: Vec<Machine>,
    /// By uid.
    pods: BTreeMap<Arc<str>, SimulatedPod>,
    makes: HashSet<Arc<Make>>,
    /// The watch has delivered all there was: addresses in use are known.
    synced: bool,
    pub(super) work: Work<Outcome>,
    /// Whose turn it is to renew its lease, and to report on itself.
    renews_next: usize,
    reports_next: usize,
}

impl World {
    pub(super) fn new(
        client_of: Box<dyn Fn(&str) -> Client + Send>,
        simulation: Simulation,
        registered: watch::Sender<u32>,
    ) -> Self {
        let machine = |number| Machine {
            number,
            uid: None,
            registering: false,
            known: false,
            renewing: false,
            reporting: false,
            more: false,
            dark: None,
            boot_id: Box::default(),
            pool: Pool::new(number),
            pods: Vec::new(),
            ordinals: Vec::new(),
        };
        let machines: Vec<_> = simulation.numbers().map(machine).collect();
        let mut world = Self {
            client_of,
            fence: Fence::open(),
            simulation,
            registered,
            began: Instant::now(),
            machines,
            pods: BTreeMap::new(),
            makes: HashSet::new(),
            synced: false,
            work: Work::new(WRITES_AT_ONCE),
            renews_next: 0,
            reports_next: 0,
        };
        for place in 0..world.machines.len() {
            world.register(place, false);
            world.plan_outage(place, Duration::ZERO);
        }
        world
    }

    /// What a change of a pod means.
    pub(super) fn saw_pod(&mut self, change: Change<shape::Pod>) {
        match change {
            Change::Applied(object) => self.pod(object),
            Change::Gone(id) => self.pod_gone(&id.uid),
            Change::Synced => {
                let first = !std::mem::replace(&mut self.synced, true);
                let all: Vec<_> = self.pods.keys().cloned().collect();
                for uid in all {
                    if first {
                        self.begin(&uid);
                    } else {
                        self.write(&uid);
                    }
                }
            }
        }
    }

    /// What a change of a node means.
    pub(super) fn saw_node(&mut self, change: Change<shape::Node>) {
        match change {
            Change::Applied(object) => self.node(&object),
            Change::Gone(id) => self.node_gone(&id.name, &id.uid),
            Change::Synced => {}
        }
    }

    /// What the end of a piece of work leads to.
    pub(super) fn ended(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Registered(place, _, Some(uid)) => self.is_registered(place, &uid),
            Outcome::Registered(place, booted, None) => {
                let again = Outcome::RegisterAgain(place, booted);
                self.work.later(RETRY, again);
            }
            Outcome::RegisterAgain(place, booted) => self.register(place, booted),
            Outcome::Renewed(place) => self.machines[place].renewing = false,
            Outcome::Reported(place, told) => self.has_reported(place, told),
            Outcome::ReportAgain(place) => self.report_again(place),
            Outcome::Due { pod, turn, stage } => self.due(&pod, turn, stage),
            Outcome::Written { pod, told, shown } => self.written(&pod, told, shown),
            Outcome::WriteAgain(uid) => {
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.busy = false;
                }
                self.write(&uid);
            }
            Outcome::Dark(place, kind, until) => self.falls_silent(place, kind, until),
            Outcome::Light(place, since) => self.comes_back(place, since),
        }
    }

    /// The place of the node of this name, if it is one of ours.
    fn place(&self, name: &str) -> Option<usize> {
        let digits = name.strip_prefix(&*self.simulation.prefix)?;
        let number: u32 = digits.parse().ok()?;
        let place = number.checked_sub(self.simulation.first)? as usize;
        let ours = place < self.machines.len() && self.simulation.name(number) == name;
        ours.then_some(place)
    }

    fn name(&self, place: usize) -> Arc<str> {
        self.simulation.name(self.machines[place].number).into()
    }

    fn writer(&self, name: &str) -> Writer {
        Writer::new((self.client_of)(name), self.fence.clone())
    }

    fn dice(&self) -> Dice {
        Dice::new(self.simulation.seed)
    }
}
