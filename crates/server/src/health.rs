//! The health checks of a server: `/healthz`, `/livez`, `/readyz`. Components add their checks to it; the
//! store's and the listener's are added here.
//!
//! `/livez` has the checks that a restart can help; `/readyz` and `/healthz` have all. A check that starts or ceases to fail is
//! logged when health is asked for, with its reason, which anonymous callers do not learn.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use kennel_core::health::{Answer, Endpoint, Outcome, Question, Unhealthy, answer};
use kennel_core::metric::Page;
use kennel_store::{Store, WriterHealth};

use crate::limits;
use crate::metrics;
use crate::object::Head;
use crate::quota::StorageQuota;

type Source = Box<dyn Fn(Endpoint) -> Vec<Outcome> + Send + Sync>;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Health {
    sources: RwLock<Vec<Source>>,
    /// The checks that failed last time.
    failing: Mutex<BTreeSet<String>>,
}

impl Health {
    pub(crate) fn add(&self, source: impl Fn(Endpoint) -> Vec<Outcome> + Send + Sync + 'static) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.push(Box::new(source));
    }

    pub(crate) fn answer(&self, question: &Question<'_>) -> Option<Answer> {
        // Upstream's name of the store.
        let check = match question.check {
            "etcd" => "store",
            check => check,
        };
        let question = Question { check, ..*question };
        answer(&question, &self.outcomes(question.endpoint))
    }

    pub(crate) fn outcomes(&self, endpoint: Endpoint) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::new("ping", Ok(()))];
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        outcomes.extend(sources.iter().flat_map(|source| source(endpoint)));
        drop(sources);
        self.log(&outcomes);
        outcomes
    }

    /// The outcomes as metrics.
    pub(crate) fn show(&self, page: &mut Page) {
        let endpoints = [("livez", Endpoint::Livez), ("readyz", Endpoint::Readyz)].into_iter();
        let rows = endpoints.flat_map(|(kind, endpoint)| {
            let outcomes = self.outcomes(endpoint).into_iter();
            outcomes.map(move |Outcome { name, result }| {
                let labels = format!("name=\"{name}\",type=\"{kind}\"");
                (labels, u8::from(result.is_ok()))
            })
        });
        page.rows(&metrics::HEALTH, rows);
    }

    fn log(&self, outcomes: &[Outcome]) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        for Outcome { name, result } in outcomes {
            match result {
                Err(reason) if failing.insert(name.clone()) => {
                    tracing::warn!("the health check {name} fails: {reason}");
                }
                Ok(()) if failing.remove(name) => {
                    tracing::info!("the health check {name} passes again");
                }
                _ => {}
            }
        }
    }
}

/// `store`: the writer completes iterations. `disk`: its commits succeed, in time; a restart would not help.
pub(crate) fn of_store(store: &Arc<dyn Store<Head>>) -> impl Fn(Endpoint) -> Vec<Outcome> + use<> {
    let store = Arc::clone(store);
    move |endpoint| of_writer(store.health(), endpoint)
}

fn of_writer(health: WriterHealth, endpoint: Endpoint) -> Vec<Outcome> {
    let (mut writer, mut disk) = (Ok(()), Ok(()));
    match health {
        WriterHealth::Healthy => {}
        WriterHealth::Failing(reason) => disk = Err(Unhealthy(reason)),
        WriterHealth::Stalled(silence) => {
            let seconds = silence.as_secs();
            writer = Err(Unhealthy(format!(
                "the store's writer has been busy with one batch for {seconds} seconds"
            )));
        }
        WriterHealth::Ended => writer = Err(Unhealthy::new("the store's writer has ended")),
    }
    let mut outcomes = vec![Outcome::new("store", writer)];
    if endpoint != Endpoint::Livez {
        outcomes.push(Outcome::new("disk", disk));
    }
    outcomes
}

/// `storage-quota`: the stored objects leave room; a restart would not help.
pub(crate) fn of_quota(
    store: &Arc<dyn Store<Head>>,
    quota: &Arc<StorageQuota>,
) -> impl Fn(Endpoint) -> Vec<Outcome> + use<> {
    let (store, quota) = (Arc::clone(store), Arc::clone(quota));
    move |endpoint| {
        if endpoint == Endpoint::Livez {
            return Vec::new();
        }
        let used = store.stats().map_or(0, |stats| stats.bytes);
        let alarm = quota.alarm(used).map(|alarm| Unhealthy(alarm.to_string()));
        vec![Outcome::new("storage-quota", alarm.map_or(Ok(()), Err))]
    }
}

/// How long the listener may take for one iteration, and go without accepting anything though it tries.
const LISTENER_BOUND: Duration = Duration::from_secs(30);

/// What a listener notes of its work.
#[derive(Debug)]
pub(crate) struct Accepting {
    /// Of the check.
    name: &'static str,
    /// When the loop last completed an iteration.
    last: Mutex<Instant>,
    /// Since when accepting fails, and how.
    failing: Mutex<Option<(Instant, String)>>,
    /// Since when all connections are taken.
    full: Mutex<Option<Instant>>,
}

impl Accepting {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            last: Mutex::new(Instant::now()),
            failing: Mutex::default(),
            full: Mutex::default(),
        }
    }

    /// The loop has completed an iteration.
    pub(crate) fn completed_iteration(&self) {
        self.completed_iteration_at(Instant::now());
    }

    pub(crate) fn completed_iteration_at(&self, now: Instant) {
        *self.last() = now;
    }

    pub(crate) fn accepted(&self) {
        *self.failing() = None;
        *self.full() = None;
    }

    pub(crate) fn failed(&self, error: &std::io::Error) {
        let mut failing = self.failing();
        let since = failing
            .as_ref()
            .map_or_else(Instant::now, |(since, _)| *since);
        *failing = Some((since, error.to_string()));
    }

    /// It waits for one of the open connections to end.
    pub(crate) fn is_full(&self) {
        self.full().get_or_insert_with(Instant::now);
    }

    fn full(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failing(&self) -> std::sync::MutexGuard<'_, Option<(Instant, String)>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All connections being taken fails no `/livez`: clients could have the server restarted.
    pub(crate) fn outcome(&self, endpoint: Endpoint, now: Instant) -> Outcome {
        let silence = now.saturating_duration_since(*self.last());
        let result = if silence > LISTENER_BOUND {
            let seconds = silence.as_secs();
            Err(format!(
                "the listener has not completed an iteration for {seconds} seconds"
            ))
        } else {
            let is_over = |since: &Instant| now.saturating_duration_since(*since) > LISTENER_BOUND;
            match (&*self.failing(), &*self.full()) {
                (Some((since, error)), _) if is_over(since) => {
                    Err(format!("the listener cannot accept connections: {error}"))
                }
                (_, Some(since)) if is_over(since) && endpoint != Endpoint::Livez => {
                    const OPEN: usize = limits::CONNECTIONS_MAX;
                    Err(format!(
                        "the listener waits for one of {OPEN} connections to end"
                    ))
                }
                _ => Ok(()),
            }
        };
        Outcome::new(self.name, result.map_err(Unhealthy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_stops_is_noticed() {
        let accepting = Accepting::new("listener");
        let now = Instant::now();
        let failure = |seconds| {
            let now = now + Duration::from_secs(seconds);
            let outcome = accepting.outcome(Endpoint::Livez, now);
            outcome.result.err().map(|reason| reason.0)
        };
        assert_eq!(failure(20), None);
        let stalled = failure(40).unwrap();
        assert!(
            stalled.contains("has not completed an iteration"),
            "{stalled}"
        );
        accepting.failed(&std::io::Error::from_raw_os_error(24));
        *accepting.last() = now + Duration::from_secs(40);
        assert!(failure(20).is_none(), "it may be over soon");
        let full = failure(40).unwrap();
        assert!(full.contains("Too many open files"), "{full}");
        accepting.accepted();
        assert_eq!(failure(40), None);
    }

    #[test]
    fn a_writer_that_hangs_or_has_ended_fails_livez_and_a_full_disk_does_not() {
        let failing = |health: &WriterHealth, endpoint| {
            let outcomes = of_writer(health.clone(), endpoint).into_iter();
            let failed = outcomes.filter(|outcome| outcome.result.is_err());
            failed.map(|outcome| outcome.name).collect::<Vec<_>>()
        };
        let check = |health: WriterHealth, live: &[&str], ready: &[&str]| {
            assert_eq!(failing(&health, Endpoint::Livez), live, "{health:?}");
            assert_eq!(failing(&health, Endpoint::Readyz), ready, "{health:?}");
        };
        check(WriterHealth::Healthy, &[], &[]);
        let hangs = WriterHealth::Stalled(Duration::from_secs(31));
        check(hangs, &["store"], &["store"]);
        check(WriterHealth::Ended, &["store"], &["store"]);
        check(WriterHealth::Failing("full".to_owned()), &[], &["disk"]);
    }

    #[test]
    fn sources_can_be_added_and_choose_their_endpoints() {
        let health = Health::default();
        health.add(|endpoint| match endpoint {
            Endpoint::Livez => Vec::new(),
            _ => vec![Outcome::new("quota", Err(Unhealthy::new("full")))],
        });
        let ask = |endpoint, check| {
            let answer = health.answer(&Question {
                endpoint,
                check,
                verbose: true,
                excluded: &[],
                trusted: true,
            });
            answer.map(|answer| (answer.code, answer.text))
        };
        let passed = "[+]ping ok\nlivez check passed\n".to_owned();
        assert_eq!(ask(Endpoint::Livez, ""), Some((200, passed)));
        let failed = "[+]ping ok\n[-]quota failed: reason withheld\nreadyz check failed\n";
        assert_eq!(ask(Endpoint::Readyz, ""), Some((500, failed.to_owned())));
        let reason = "internal server error: full\n".to_owned();
        assert_eq!(ask(Endpoint::Readyz, "quota"), Some((500, reason)));
        assert_eq!(ask(Endpoint::Livez, "quota"), None);
    }
}
