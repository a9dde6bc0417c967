//! Runs the components of a process (controllers, nodes, DNS server) and restarts those that panic or return.
//! The other components keep running.
//!
//! At first all components share one set of informers. A restarted component has missed their events, so it gets
//! informers of its own.

use std::borrow::Cow;
use std::fmt::Display;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kennel_client::backoff::{self, Policy};
use kennel_client::metrics::{Counter, Observed, Page};
use kennel_client::pulse::{self, Pulse};
use kennel_control::informers::Informers;
use kennel_core::health::{Endpoint, Outcome, Unhealthy};
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Restart delay after the first failure; doubles with each further one.
const RESTART: Policy = Policy::exact(Duration::from_secs(1), Duration::from_mins(1));
/// Uptime after which the restart delay resets.
const RESET_AFTER: Duration = Duration::from_mins(5);

/// How long the loop of a controller may take for one iteration. It completes one every few seconds, and a controller that failed
/// often waits for a minute before its next start.
const STALL: Duration = Duration::from_secs(90);

/// Components that have been added, but whose shared informers do not run yet.
pub struct Supervisor {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Makes the informers of restarted components.
    watcher: Client,
    informers: Informers,
    restarts: RestartMetrics,
}

kennel_core::metrics! {
    pub METRICS;
    Counter STARTS = "kennel_component_starts_total" ["component"]
        "Starts of a component of this process.";
    Counter FAILURES = "kennel_component_failures_total" ["component"]
        "Panics and errors that ended a component of this process.";
}

/// Counts the starts and failures of each component, and knows which ones complete iterations.
#[derive(Clone, Default)]
pub struct RestartMetrics(Arc<Mutex<Vec<Arc<ComponentMetrics>>>>);

/// What a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its loop comes round, or it is unhealthy.
    Controller,
    /// It has no loop that a health check could look at.
    Other,
}

struct ComponentMetrics {
    name: Cow<'static, str>,
    starts: Counter,
    failures: Counter,
    /// Beaten by its loops.
    pulse: Arc<Pulse>,
    /// Whether it has loops that beat.
    kind: Kind,
    is_down: AtomicBool,
}

impl ComponentMetrics {
    fn new(name: Cow<'static, str>, kind: Kind) -> Self {
        Self {
            name,
            kind,
            starts: Counter::default(),
            failures: Counter::default(),
            // A controller that never comes round is silent since its start.
            pulse: pulse::new(),
            is_down: AtomicBool::new(false),
        }
    }

    /// None if it is no controller. One that failed is not ready; restarting the process would not help it.
    fn outcome(&self, endpoint: Endpoint, now: Instant) -> Option<Outcome> {
        if self.kind != Kind::Controller {
            return None;
        }
        let silence = self.pulse.silence(now.into_std());
        let result = if silence > STALL {
            let seconds = silence.as_secs();
            Err(format!(
                "its loop has not completed an iteration for {seconds} seconds"
            ))
        } else if self.is_down.load(Ordering::Relaxed) && endpoint != Endpoint::Livez {
            Err("it has failed, and will be started again".to_owned())
        } else {
            Ok(())
        };
        let name = self.name.to_lowercase().replace(' ', "-");
        Some(Outcome::new(name, result.map_err(Unhealthy)))
    }
}

impl RestartMetrics {
    fn add(&self, name: Cow<'static, str>, kind: Kind) -> Arc<ComponentMetrics> {
        let component = Arc::new(ComponentMetrics::new(name, kind));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&component));
        component
    }

    /// One health check for each controller: whether its loop completes iterations.
    pub fn health(&self, endpoint: Endpoint) -> Vec<Outcome> {
        let now = Instant::now();
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .filter_map(|one| one.outcome(endpoint, now))
            .collect()
    }
}

impl Observed for RestartMetrics {
    fn show(&self, page: &mut Page) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |one: &ComponentMetrics, count: &Counter| {
            (format!("component=\"{}\"", one.name), count.get())
        };
        page.rows(&STARTS, all.iter().map(|one| row(one, &one.starts)));
        page.rows(&FAILURES, all.iter().map(|one| row(one, &one.failures)));
    }
}

impl Supervisor {
    /// All informers watch through `watcher`.
    pub fn new(watcher: Client) -> Self {
        Self {
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            informers: Informers::new(&watcher),
            watcher,
            restarts: RestartMetrics::default(),
        }
    }

    pub fn restart_metrics(&self) -> RestartMetrics {
        self.restarts.clone()
    }

    /// Starts a controller, whose loop health checks look at. `controller` is called for every (re)start; it must subscribe
    /// to the informers that it needs before it returns the future to run.
    pub fn start_controller<C, F, E>(&mut self, name: impl Into<Cow<'static, str>>, controller: C)
    where
        C: Fn(&mut Informers, CancellationToken) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        self.start_component(name.into(), Kind::Controller, controller);
    }

    /// As [`Self::start_controller`], for a component that has no health check here: a node, a DNS server.
    pub fn start<C, F, E>(&mut self, name: impl Into<Cow<'static, str>>, component: C)
    where
        C: Fn(&mut Informers, CancellationToken) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        self.start_component(name.into(), Kind::Other, component);
    }

    fn start_component<C, F, E>(&mut self, name: Cow<'static, str>, kind: Kind, component: C)
    where
        C: Fn(&mut Informers, CancellationToken) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let stop = self.stop.clone();
        let first = component(&mut self.informers, stop.clone());
        let watcher = self.watcher.clone();
        let metrics = self.restarts.add(name, kind);
        self.tasks.spawn(async move {
            supervise(&metrics, &stop, first, || {
                let mut own = Informers::new(&watcher);
                let component = component(&mut own, stop.clone());
                with_informers(component, own, stop.clone())
            })
            .await;
        });
    }

    /// Runs the shared informers. Call it after the last [`Self::start`].
    pub fn run(self) -> Running {
        self.tasks.spawn(self.informers.run(self.stop.clone()));
        self.tasks.close();
        Running {
            tasks: self.tasks,
            stop: self.stop,
        }
    }
}

/// Components whose informers run.
pub struct Running {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Running {
    /// Stops all components, and waits until they have returned or the timeout has passed.
    pub async fn stop(self, timeout: Duration) {
        self.stop.cancel();
        if tokio::time::timeout(timeout, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some components did not stop within {timeout:?}");
        }
    }
}

pub async fn with_informers<E>(
    component: impl Future<Output = Result<(), E>>,
    informers: Informers,
    stop: CancellationToken,
) -> Result<(), E> {
    let mut component = std::pin::pin!(component);
    tokio::select! {
        result = &mut component => return result,
        () = informers.run(stop) => {}
    }
    // The process stops: the component finishes the writes that it has begun.
    component.await
}

/// Runs a component, and restarts it after each failure until `stop` is cancelled.
async fn supervise<First, Next, E>(
    metrics: &ComponentMetrics,
    stop: &CancellationToken,
    first: First,
    restart: impl Fn() -> Next,
) where
    First: Future<Output = Result<(), E>> + Send + 'static,
    Next: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let name = &*metrics.name;
    let mut failures = 0;
    let mut started_at = Instant::now();
    let mut running = tokio::spawn(pulse::scope(Arc::clone(&metrics.pulse), first));
    metrics.starts.increment();
    while let Some(reason) = failure_reason(running.await, stop) {
        metrics.failures.increment();
        metrics.is_down.store(true, Ordering::Relaxed);
        if stop.is_cancelled() {
            tracing::error!("the {name} failed while stopping: {reason}");
            return;
        }
        failures = if started_at.elapsed() > RESET_AFTER {
            0
        } else {
            failures + 1
        };
        let delay = restart_delay(failures);
        tracing::error!("the {name} failed and restarts in {delay:?}: {reason}");
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(delay) => {}
        }
        started_at = Instant::now();
        running = tokio::spawn(pulse::scope(Arc::clone(&metrics.pulse), restart()));
        metrics.is_down.store(false, Ordering::Relaxed);
        metrics.starts.increment();
    }
}

/// Why a component returned, unless the process stops.
fn failure_reason<E: Display>(
    result: Result<Result<(), E>, tokio::task::JoinError>,
    stop: &CancellationToken,
) -> Option<String> {
    match result {
        Ok(Ok(())) => {
            (!stop.is_cancelled()).then(|| "it returned without being stopped".to_owned())
        }
        Ok(Err(error)) => Some(error.to_string()),
        Err(panic) => Some(panic.to_string()),
    }
}

fn restart_delay(failures: u32) -> Duration {
    backoff::delay(&RESTART, failures.saturating_sub(1))
}

#[cfg(test)]
mod panic_tests;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// A component that fails `times` times is started `times + 1` times.
    async fn check(fail: impl Fn(u32) -> Result<(), String> + Copy + Send + 'static, times: u32) {
        let stop = CancellationToken::new();
        let started = Arc::new(AtomicU32::new(0));
        let component = || {
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
        supervise(
            &ComponentMetrics::new("test".into(), Kind::Other),
            &stop,
            component(),
            component,
        )
        .await;
        assert_eq!(started.load(Ordering::SeqCst), times + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_component_that_panics_is_restarted() {
        check(|_| panic!("on purpose"), 3).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_component_that_returns_is_restarted() {
        check(|_| Err("the watch ended".to_owned()), 3).await;
        check(|_| Ok(()), 1).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_restarted_while_the_process_stops() {
        let stop = CancellationToken::new();
        stop.cancel();
        let first = async { Err::<(), _>("interrupted") };
        supervise(
            &ComponentMetrics::new("test".into(), Kind::Other),
            &stop,
            first,
            || async { panic!("started after the end") },
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_come_round_is_unhealthy() {
        let metrics = RestartMetrics::default();
        let check = |endpoint, expected: &[(&str, bool)]| {
            let found = metrics.health(endpoint);
            let found: Vec<_> = found
                .iter()
                .map(|outcome| (outcome.name.as_str(), outcome.result.is_ok()))
                .collect();
            assert_eq!(found, expected, "{endpoint:?}");
        };
        let stop = CancellationToken::new();
        let start = |name: &'static str, kind, beats: bool, restarts: bool| {
            let (component, stop) = (metrics.add(name.into(), kind), stop.clone());
            let run = move || async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if beats {
                    pulse::beat();
                }
                if restarts {
                    return Err("on purpose");
                }
                std::future::pending().await
            };
            tokio::spawn(async move { supervise(&component, &stop, run(), run).await })
        };
        start("Token Cleaner", Kind::Controller, true, false);
        start("node", Kind::Other, false, false);
        start("scheduler", Kind::Controller, true, true);
        // Hangs before its first turn.
        start("disruption controller", Kind::Controller, false, false);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        // The scheduler waits for its next start.
        let down = [
            ("token-cleaner", true),
            ("scheduler", false),
            ("disruption-controller", true),
        ];
        check(Endpoint::Readyz, &down);
        check(Endpoint::Livez, &down.map(|(name, _)| (name, true)));
        tokio::time::sleep(STALL).await;
        check(
            Endpoint::Livez,
            &[
                ("token-cleaner", false),
                ("scheduler", true),
                ("disruption-controller", false),
            ],
        );
        stop.cancel();
    }

    #[test]
    fn the_restart_delay_doubles_up_to_its_maximum() {
        let seconds = |failures| restart_delay(failures).as_secs();
        assert_eq!([1, 2, 3, 7, 99].map(seconds), [1, 2, 4, 60, 60]);
    }
}
