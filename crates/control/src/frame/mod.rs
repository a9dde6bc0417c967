//! The frame that every controller runs in.
//!
//! A controller is two things: its *rules*, pure code in `kennel_core` that turns what exists into what to do, and one
//! file of *wiring* in this crate that implements [`Controller`]. The frame does the rest:
//!
//! ```text
//!                   ┌──────────────────────── run ────────────────────────┐
//!   informers ──▶ Watches ──▶ handle(event) ──┐                            │
//!                   └─ all listed ▶ synced() ─┤                            │
//!   deadline ─────────────────────────────────┼─▶ reconcile() ─▶ Context ──┼─▶ jobs ──▶ API
//!                   ┌─────── completed(outcome) ┘                  │       │
//!                   └──────────────────◀──── job or delay ended ◀──┘       │
//!                   └──────────────────────────────────────────────────────┘
//! ```
//!
//! - **Watch set.** [`Watches`] merges any number of watches into one stream of the controller's own event type.
//!   Events that are ready together are handled in one round, at most [`BATCH`] of them.
//! - **Initial sync.** Until each watch has delivered its first list, events are handled but nothing is reconciled: a
//!   controller never decides on half a picture. When the last list is complete, [`Controller::synced`] runs once. A
//!   controller may add watches later ([`Context::watch`]); then it waits again until those have delivered theirs.
//! - **Rounds.** After each round (events, a finished job, a deadline) [`Controller::reconcile`] asks the rules what to do.
//! - **Work queue.** [`Context::spawn`] queues a job. The frame runs as many at once as [`Controller::pace`] allows, and
//!   hands the result to [`Controller::completed`]. A job that panics takes its controller along; the supervisor starts
//!   it again, and it begins with a new sync.
//! - **Retries.** [`Context::after`] delivers an outcome later. Delays come from
//!   [`kennel_client::backoff`]: `Failures` counts those of each object, and adds jitter. [`status_writes`] repeats writes of statuses.
//! - **Deadlines.** [`Controller::next_deadline`] says when to reconcile though nothing happened. The frame also completes an
//!   iteration every [`HEARTBEAT`], to notice that the wall clock was set forward.
//! - **Leader fence.** A process gives its controllers one [`Fence`](kennel_client::fence::Fence), in their [`Setup`]. While
//!   it is closed, a controller only watches: it reconciles nothing, and no queued job starts. Jobs write with
//!   [`Setup::writer`], which cancels requests when the fence closes. A controller needs no other test for being the leader.
//! - **Health.** Each round beats the pulse of the component that runs the controller ([`kennel_client::pulse`]).
//! - **Metrics.** [`Metrics`] has the rounds of each controller, how long they took, and how many jobs wait and run;
//!   [`Controller::observe`] is told the same after each round.
//! - **Graceful stop.** When [`Setup::stop`] is cancelled the frame starts no more jobs, gives those that run a few seconds,
//!   and returns `Ok`. A watch that ends before that is an error.
//!
//! One task owns the controller, so its methods need no locks. They must not block.
//!
//! # A new controller
//!
//! This one labels every node. Its rule is one line; a larger one belongs in `kennel_core`.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use kennel_client::backoff::{Failures, Policy};
//! use kennel_client::write::{Call, Content, Writer};
//! use kennel_client::{Error, api};
//! use kennel_control::frame::{self, Context, Controller, Setup, Update, Watches};
//! use kennel_control::informers::Informers;
//! use kennel_types::Node;
//! use kube::Client;
//!
//! const RETRY: Policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(10));
//!
//! enum Event {
//!     Node(Update<Arc<Node>>),
//! }
//!
//! enum Outcome {
//!     /// The result of one write: the node's name, and whether it is labelled now.
//!     Labelled(String, bool),
//!     RetryDue(String),
//! }
//!
//! struct Labeller {
//!     writer: Writer,
//!     unlabelled: Vec<String>,
//!     failures: Failures<String>,
//! }
//!
//! impl Controller for Labeller {
//!     type Event = Event;
//!     type Outcome = Outcome;
//!
//!     fn name(&self) -> &'static str {
//!         "node labeller"
//!     }
//!
//!     fn handle(&mut self, Event::Node(node): Event, _: &mut Context<Self>) {
//!         if let Update::Applied(node) = node
//!             && !node.metadata.labels.iter().flatten().any(|(key, _)| key == "example.com/seen")
//!         {
//!             self.unlabelled.extend(node.metadata.name.clone());
//!         }
//!     }
//!
//!     fn reconcile(&mut self, cx: &mut Context<Self>) {
//!         for name in self.unlabelled.drain(..) {
//!             let writer = self.writer.clone();
//!             cx.spawn(async move {
//!                 let patch = serde_json::json!({"metadata": {"labels": {"example.com/seen": ""}}});
//!                 let call = Call::patch(api::node_path(&name), Content::Merge, &patch);
//!                 let done = writer.send(&call).await.is_ok();
//!                 Outcome::Labelled(name, done)
//!             });
//!         }
//!     }
//!
//!     fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
//!         match outcome {
//!             Outcome::Labelled(name, true) => self.failures.reset(&name),
//!             Outcome::Labelled(name, false) => {
//!                 let delay = self.failures.next_delay(name.clone());
//!                 cx.after(delay, Outcome::RetryDue(name));
//!             }
//!             Outcome::RetryDue(name) => self.unlabelled.push(name),
//!         }
//!     }
//! }
//!
//! /// Call this before the informers run: it subscribes to them.
//! fn run(
//!     client: Client,
//!     informers: &mut Informers,
//!     setup: Setup,
//! ) -> impl Future<Output = Result<(), Error>> + use<> {
//!     let mut watches = Watches::default();
//!     watches.add("nodes", informers.nodes.subscribe(), Event::Node);
//!     let failures = Failures::new(RETRY);
//!     let labeller = Labeller { writer: setup.writer(client), unlabelled: Vec::new(), failures };
//!     frame::run(labeller, watches, setup)
//! }
//! ```
//!
//! A controller that looks at each object by itself needs even less: an async function, see [`objects`].

mod context;
mod driver;
pub mod expiry;
mod metrics;
pub mod objects;
mod setup;
pub mod status_writes;
mod watches;

use std::time::Duration;

use kennel_client::clock::Clock;
use kennel_client::pace::Pace;
use kennel_client::work::WRITES_AT_ONCE;
use kennel_types::Monotonic;

pub use context::Context;
pub use driver::{run, run_with};
pub use metrics::{METRICS, Metrics};
pub use setup::Setup;
pub use watches::{Update, Watches};

/// How many events are handled in one round: enough that a wave of them costs one round, few enough that finished
/// jobs are not kept waiting.
pub const BATCH: usize = 256;
/// The frame completes an iteration at least this often.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// The wiring of one controller. See the [module](self).
pub trait Controller: Sized + Send + 'static {
    /// What its watches deliver, reduced to what its rules read.
    type Event: Send + 'static;
    /// What a job or a delay ends with.
    type Outcome: Send + 'static;

    /// For the log and the metrics.
    fn name(&self) -> &'static str;

    /// Takes in one event. Also called before the initial sync.
    fn handle(&mut self, event: Self::Event, cx: &mut Context<Self>);

    /// Takes in the outcome of a job, or one that was to come after a delay.
    fn completed(&mut self, outcome: Self::Outcome, cx: &mut Context<Self>);

    /// Starts what the rules ask for. Called after each round, once all watches are synced.
    fn reconcile(&mut self, _cx: &mut Context<Self>) {}

    /// Called once before the first round, to start jobs that depend on no watch.
    fn start(&mut self, _cx: &mut Context<Self>) {}

    /// Called when all watches have delivered their first list; again only if watches were added later.
    fn synced(&mut self, _cx: &mut Context<Self>) {}

    /// The fence has opened after it was closed. Until now the controller only watched.
    fn elected(&mut self, _cx: &mut Context<Self>) {}

    /// When to reconcile though nothing happens. Asked before each round, once all watches are synced.
    fn next_deadline(&self, _clock: &Clock) -> Option<Monotonic> {
        None
    }

    /// How many jobs may run at once.
    fn pace(&self) -> Pace {
        Pace::steady(WRITES_AT_ONCE)
    }

    /// Called after each round, for metrics of the controller's own.
    fn observe(&self, _round: &Round) {}
}

/// What happened in one round, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// How long handling and reconciling took.
    pub took: Duration,
    /// Jobs that wait for others to end.
    pub queued: usize,
    /// Jobs that run.
    pub running: usize,
    /// How many may run at once.
    pub limit: usize,
}
