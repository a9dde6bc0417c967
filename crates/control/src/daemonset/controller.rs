//! The loop: news in, writes out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _};
use kennel_client::events::{self, Recorder, Reference};
use kennel_client::pace::Pace;
use kennel_client::work::Work;
use kennel_client::write::Writer;
use kennel_client::{Error, clock};
use kennel_core::daemonset::Planner;
use kennel_core::daemonset::event::{
    Action, Answer, Event, FailureKind, Note, Outcome, SetRef, Ticket, Write,
};
use kennel_core::daemonset::options::Options;
use kube::api::DynamicObject;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::act::{self, Names, Performed};
use super::metrics::{self, Metrics};
use super::seen::{Seen, Watch};

/// The least time between two status writes of one DaemonSet, so that a wave of pods becoming
/// ready costs a few writes and not thousands.
const STATUS_PAUSE: Duration = Duration::from_millis(50);

/// The loop comes round at least so often, to show that it is alive.
const ROUND_MS_MAX: i64 = 10_000;

/// A piece of work that has ended.
enum Ended {
    Write {
        ticket: Ticket,
        daemon_set: Arc<SetRef>,
        performed: Performed,
        place: usize,
        took: Duration,
    },
    /// The pause before a status write is over.
    StatusDue {
        ticket: Ticket,
        daemon_set: Arc<SetRef>,
    },
}

/// What the loop waits for.
enum News {
    Seen(Vec<Seen>),
    Ended(Ended),
    Time,
}

/// A DaemonSet as the shell knows it.
struct Known {
    /// As last seen: its status is written into it.
    object: Arc<DynamicObject>,
    /// When its status was last written, or begun to be.
    written_at: Option<Instant>,
    /// The version that it got by that.
    written: u64,
}

pub(super) struct Controller {
    planner: Planner,
    writer: Writer,
    recorder: Recorder,
    pace: Pace,
    work: Work<Ended>,
    /// Of pods that are being created.
    names: Names,
    metrics: Arc<Metrics>,
    /// By uid.
    known: BTreeMap<Arc<str>, Known>,
    /// Watches that have not delivered everything yet.
    unsynced: BTreeSet<Watch>,
}

impl Controller {
    pub(super) fn new(
        options: Options,
        pace: Pace,
        writer: Writer,
        recorder: Recorder,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            planner: Planner::new(options),
            writer,
            recorder,
            work: Work::new(pace.limit()),
            pace,
            names: Names::default(),
            metrics,
            known: BTreeMap::new(),
            unsynced: Watch::ALL.into(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut rounds: BoxStream<'static, Vec<Seen>>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        loop {
            let latest = clock::now_ms() + ROUND_MS_MAX;
            let wake = self
                .planner
                .next_deadline()
                .map_or(latest, |at| at.min(latest));
            let news = tokio::select! {
                () = stop.cancelled() => break,
                round = rounds.next() => match round {
                    Some(round) => News::Seen(round),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("daemonsets, revisions, nodes and pods")),
                },
                ended = self.work.next() => News::Ended(ended),
                () = clock::sleep_until(Some(wake)) => News::Time,
            };
            let began = Instant::now();
            match news {
                News::Seen(round) => self.saw(round),
                News::Ended(ended) => self.ended(ended),
                News::Time => self.tell(Event::Time),
            }
            self.act();
            self.measure(began.elapsed());
        }
        self.work.finish().await;
        Ok(())
    }

    fn saw(&mut self, round: Vec<Seen>) {
        for seen in round {
            match seen {
                Seen::Event(event) => {
                    match &event {
                        Event::DaemonSetGone(uid) => drop(self.known.remove(uid)),
                        Event::Pod(pod) => self.names.saw(&pod.namespace, &pod.name),
                        _ => {}
                    }
                    self.tell(event);
                }
                Seen::DaemonSet(event, object) => {
                    self.know(object);
                    self.tell(event);
                }
                // The planner acts once all watches have delivered what there was, and stays so.
                Seen::Synced(watch) => {
                    if self.unsynced.remove(&watch) && self.unsynced.is_empty() {
                        self.tell(Event::Synced);
                    }
                }
                Seen::Nothing => {}
            }
        }
    }

    fn know(&mut self, object: Arc<DynamicObject>) {
        let meta = &object.metadata;
        let uid: Arc<str> = meta.uid.as_deref().unwrap_or_default().into();
        let version = meta.resource_version.as_ref().and_then(|v| v.parse().ok());
        let Some(known) = self.known.get_mut(&uid) else {
            let known = Known {
                object,
                written_at: None,
                written: 0,
            };
            self.known.insert(uid, known);
            return;
        };
        if version.is_some_and(|version: u64| version < known.written) {
            self.metrics.stale.increment();
        }
        known.object = object;
    }

    fn tell(&mut self, event: Event) {
        self.planner.apply(clock::now_ms(), event);
    }

    /// Carries out what the planner asks for after a round of news.
    fn act(&mut self) {
        for action in self.planner.take_actions() {
            match action {
                Action::Write {
                    ticket,
                    daemon_set,
                    write: Write::WriteStatus,
                } => self.pause_status(ticket, daemon_set),
                Action::Write {
                    ticket,
                    daemon_set,
                    write,
                } => self.write(ticket, daemon_set, write),
                Action::Emit { daemon_set, note } => self.emit(&daemon_set, note),
            }
        }
    }

    fn measure(&self, took: Duration) {
        let metrics = &self.metrics;
        metrics.planning.observe(took);
        metrics.syncs.increment();
        metrics.round.set(clock::now_ms() / 1000);
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        metrics.queued.set(number(self.work.queued()));
        metrics.running.set(number(self.work.running()));
        metrics.allowed.set(number(self.pace.limit()));
        metrics.daemon_sets.set(number(self.known.len()));
    }

    fn write(&mut self, ticket: Ticket, daemon_set: Arc<SetRef>, write: Write) {
        let (writer, names) = (self.writer.clone(), self.names.clone());
        self.work.push(async move {
            let (began, place) = (Instant::now(), metrics::place(&write));
            let performed = act::perform(&writer, &names, &daemon_set, write).await;
            let took = began.elapsed();
            Ended::Write {
                ticket,
                daemon_set,
                performed,
                place,
                took,
            }
        });
    }

    /// Waits a little before a status is written, if one was written a moment ago.
    fn pause_status(&mut self, ticket: Ticket, daemon_set: Arc<SetRef>) {
        let known = self.known.get(&daemon_set.uid);
        let last = known.and_then(|known| known.written_at);
        let pause = last.map_or(STATUS_PAUSE, |at| STATUS_PAUSE.saturating_sub(at.elapsed()));
        self.work
            .later(pause, Ended::StatusDue { ticket, daemon_set });
    }

    fn write_status(&mut self, ticket: Ticket, daemon_set: Arc<SetRef>) {
        let known = self.known.get_mut(&daemon_set.uid);
        let Some((known, counters)) = known.zip(self.planner.status(&daemon_set.uid)) else {
            // It is gone: there is no status left to write.
            let outcome = Outcome::Done(Answer::Nothing);
            return self.tell(Event::Ended { ticket, outcome });
        };
        known.written_at = Some(Instant::now());
        let (writer, object) = (self.writer.clone(), known.object.clone());
        // Before the pods that wait: who watches a rollout should see how it goes.
        self.work.push_first(async move {
            let began = Instant::now();
            let performed = act::write_status(&writer, &daemon_set, &object, counters).await;
            let took = began.elapsed();
            Ended::Write {
                ticket,
                daemon_set,
                performed,
                place: metrics::place(&Write::WriteStatus),
                took,
            }
        });
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::StatusDue { ticket, daemon_set } => self.write_status(ticket, daemon_set),
            Ended::Write {
                ticket,
                daemon_set,
                performed,
                place,
                took,
            } => {
                let Performed {
                    outcome,
                    pushed_back,
                } = performed;
                self.metrics.wrote(place, &outcome, took);
                self.pace.answered(took, pushed_back);
                self.work.set_limit(self.pace.limit());
                self.learn(&daemon_set, place, &outcome);
                self.tell(Event::Ended { ticket, outcome });
            }
        }
    }

    fn learn(&mut self, daemon_set: &SetRef, place: usize, outcome: &Outcome) {
        match outcome {
            Outcome::Done(Answer::Status { version, .. }) => {
                if let Some(known) = self.known.get_mut(&daemon_set.uid) {
                    known.written = known.written.max(*version);
                }
            }
            Outcome::Done(_) => {}
            Outcome::Failed(failure) if failure.kind == FailureKind::NotFound => {}
            Outcome::Failed(failure) => {
                let SetRef {
                    namespace, name, ..
                } = daemon_set;
                let (what, why) = (metrics::word(place), &failure.message);
                tracing::warn!("{what} for daemonset {namespace}/{name} failed: {why}");
            }
        }
    }

    fn emit(&self, daemon_set: &SetRef, note: Note) {
        self.metrics.events.increment();
        let known = self.known.get(&daemon_set.uid);
        let version = known.and_then(|known| known.object.metadata.resource_version.clone());
        let about = Reference {
            api_version: "apps/v1",
            kind: "DaemonSet",
            namespace: daemon_set.namespace.clone(),
            name: daemon_set.name.clone(),
            uid: daemon_set.uid.clone(),
            resource_version: version.unwrap_or_default(),
            field_path: String::new(),
        };
        let Note {
            warning,
            reason,
            message,
        } = note;
        let note = events::Note {
            warning,
            reason: reason.into(),
            message,
        };
        self.recorder.emit(about, note);
    }
}
