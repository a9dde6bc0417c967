//! The parts of a process that are to run as long as it does. One that panics or gives up is logged and
//! started again, and the others do not notice.
//!
//! All share one watch per kind. A part that is started again has missed what the watches said in the
//! meantime, so it gets watches of its own.

use std::borrow::Cow;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kennel_client::metrics::{Counter, Observed, Page};
use kennel_control::informers::Informers;
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a part that has failed rests at first; doubled each time.
const REST: Duration = Duration::from_secs(1);
/// And at most so long.
const REST_MAX: Duration = Duration::from_mins(1);
/// Who has run for so long begins with a short rest again.
const CALM: Duration = Duration::from_mins(5);

/// See the [module](self).
pub(crate) struct Parts {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Watches for those who are started again.
    watcher: Client,
    informers: Informers,
    history: History,
}

kennel_core::metrics! {
    pub(crate) METRICS;
    Counter STARTS = "kennel_component_starts_total" ["component"]
        "Starts of a component of this process.";
    Counter FAILURES = "kennel_component_failures_total" ["component"]
        "Panics and errors that ended a component of this process.";
}

/// How often each part was started, and how often it failed.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<Vec<Arc<Lives>>>>);

#[derive(Default)]
struct Lives {
    name: Cow<'static, str>,
    starts: Counter,
    failures: Counter,
}

impl History {
    fn of(&self, name: Cow<'static, str>) -> Arc<Lives> {
        let lives = Arc::new(Lives {
            name,
            ..Lives::default()
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&lives));
        lives
    }
}

impl Observed for History {
    fn show(&self, page: &mut Page) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row =
            |lives: &Lives, count: &Counter| (format!("component=\"{}\"", lives.name), count.get());
        page.rows(&STARTS, all.iter().map(|lives| row(lives, &lives.starts)));
        page.rows(
            &FAILURES,
            all.iter().map(|lives| row(lives, &lives.failures)),
        );
    }
}

impl Parts {
    /// No parts yet; what they see they see through `watcher`.
    pub(crate) fn new(watcher: Client) -> Self {
        Self {
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            informers: Informers::new(&watcher),
            watcher,
            history: History::default(),
        }
    }

    /// How the parts have fared; goes on being told.
    pub(crate) fn history(&self) -> History {
        self.history.clone()
    }

    /// Starts a part. It is asked to make itself each time that it is (re)started.
    pub(crate) fn start<P, F, E>(&mut self, name: impl Into<Cow<'static, str>>, part: P)
    where
        P: Fn(&mut Informers, CancellationToken) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let stop = self.stop.clone();
        let first = part(&mut self.informers, stop.clone());
        let watcher = self.watcher.clone();
        let lives = self.history.of(name.into());
        self.tasks.spawn(async move {
            supervise(&lives, &stop, first, || {
                let mut own = Informers::new(&watcher);
                let part = part(&mut own, stop.clone());
                with_watches(part, own, stop.clone())
            })
            .await;
        });
    }

    /// All parts there are have been started: the watches that they share begin.
    pub(crate) fn run(self) -> Running {
        self.tasks.spawn(self.informers.run(self.stop.clone()));
        self.tasks.close();
        Running {
            tasks: self.tasks,
            stop: self.stop,
        }
    }
}

/// Parts that run.
pub(crate) struct Running {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Running {
    /// Tells all to stop and gives them so long for it.
    pub(crate) async fn stop(self, patience: Duration) {
        self.stop.cancel();
        if tokio::time::timeout(patience, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some parts did not end in time");
        }
    }
}

async fn with_watches<E>(
    part: impl Future<Output = Result<(), E>>,
    watches: Informers,
    stop: CancellationToken,
) -> Result<(), E> {
    let mut part = std::pin::pin!(part);
    tokio::select! {
        ended = &mut part => return ended,
        () = watches.run(stop) => {}
    }
    // Nobody watches any more, or we were told to stop: the part finishes what it has begun.
    part.await
}

/// Runs a part, and again after each time that it fails, until told to stop.
async fn supervise<First, Next, E>(
    lives: &Lives,
    stop: &CancellationToken,
    first: First,
    again: impl Fn() -> Next,
) where
    First: Future<Output = Result<(), E>> + Send + 'static,
    Next: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let name = &*lives.name;
    let mut failures = 0;
    let mut began = Instant::now();
    let mut running = tokio::spawn(first);
    lives.starts.increment();
    while let Some(why) = failure(running.await, stop) {
        lives.failures.increment();
        if stop.is_cancelled() {
            tracing::error!("the {name} failed while it stopped: {why}");
            return;
        }
        failures = if began.elapsed() > CALM {
            0
        } else {
            failures + 1
        };
        let rest = rest_after(failures);
        tracing::error!("the {name} failed and is started again in {rest:?}: {why}");
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(rest) => {}
        }
        began = Instant::now();
        running = tokio::spawn(again());
        lives.starts.increment();
    }
}

/// Why a part ended before it was told to.
fn failure<E: Display>(
    ended: Result<Result<(), E>, tokio::task::JoinError>,
    stop: &CancellationToken,
) -> Option<String> {
    match ended {
        Ok(Ok(())) => (!stop.is_cancelled()).then(|| "it ended by itself".to_owned()),
        Ok(Err(error)) => Some(error.to_string()),
        Err(panic) => Some(panic.to_string()),
    }
}

fn rest_after(failures: u32) -> Duration {
    REST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)))
        .min(REST_MAX)
}

#[cfg(test)]
mod panics;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Fails so often, then runs until told to stop. Returns how often it was started.
    async fn check(fail: impl Fn(u32) -> Result<(), String> + Copy + Send + 'static, times: u32) {
        let stop = CancellationToken::new();
        let started = Arc::new(AtomicU32::new(0));
        let part = || {
            let (stop, started) = (stop.clone(), started.clone());
            async move {
                let before = started.fetch_add(1, Ordering::SeqCst);
                if before < times {
                    return fail(before);
                }
                stop.cancel();
                Ok::<_, String>(())
            }
        };
        supervise(&Lives::default(), &stop, part(), part).await;
        assert_eq!(started.load(Ordering::SeqCst), times + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_panics_is_started_again() {
        check(|_| panic!("on purpose"), 3).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_gives_up_is_started_again() {
        check(|_| Err("the watch ended".to_owned()), 3).await;
        check(|_| Ok(()), 1).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_started_again_once_all_are_told_to_stop() {
        let stop = CancellationToken::new();
        stop.cancel();
        let first = async { Err::<(), _>("interrupted") };
        supervise(&Lives::default(), &stop, first, || async {
            panic!("started after the end")
        })
        .await;
    }

    #[test]
    fn the_rests_grow_and_end_somewhere() {
        let seconds = |failures| rest_after(failures).as_secs();
        assert_eq!([1, 2, 3, 7, 99].map(seconds), [1, 2, 4, 60, 60]);
    }
}
