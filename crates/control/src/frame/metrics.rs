//! The metrics of every controller that runs in the frame.

use std::sync::{Arc, Mutex, PoisonError};

use kennel_client::metrics::{Counter, Gauge, Observed, Page, Seconds};

use super::Round;

kennel_core::metrics! {
    pub METRICS;
    Counter ROUNDS = "kennel_controller_rounds_total" ["name"]
        "Rounds of a controller: it handled events, a finished job or a deadline.";
    Counter ROUND_TIME = "kennel_controller_round_seconds_total" ["name"] "Time that these rounds took.";
    Gauge QUEUED = "workqueue_depth" ["name"] "Jobs of a controller that wait for others to end.";
    Gauge RUNNING = "kennel_controller_jobs_running" ["name"] "Jobs of a controller that run.";
}

/// Of all controllers of a process.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Vec<Arc<ControllerMetrics>>>);

/// Of one controller, over all its starts.
#[derive(Debug)]
pub(super) struct ControllerMetrics {
    /// In the labels.
    name: String,
    rounds: Counter,
    round_time: Seconds,
    queued: Gauge,
    running: Gauge,
}

impl Metrics {
    /// Those of the controller with this [name](super::Controller::name).
    pub(super) fn of(&self, controller: &str) -> Arc<ControllerMetrics> {
        let name = label(controller);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.name == name) {
            return known.clone();
        }
        let new = Arc::new(ControllerMetrics {
            name,
            rounds: Counter::default(),
            round_time: Seconds::default(),
            queued: Gauge::default(),
            running: Gauge::default(),
        });
        all.push(new.clone());
        new
    }
}

impl ControllerMetrics {
    pub(super) fn observe(&self, round: &Round) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.rounds.increment();
        self.round_time.add(round.took);
        self.queued.set(number(round.queued));
        self.running.set(number(round.running));
    }
}

impl Observed for Metrics {
    fn show(&self, page: &mut Page) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = |one: &ControllerMetrics| format!("name=\"{}\"", one.name);
        let rounds = all.iter().map(|one| (labels(one), one.rounds.get()));
        page.rows(&ROUNDS, rounds);
        let time = all.iter().map(|one| (labels(one), one.round_time.get()));
        page.rows(&ROUND_TIME, time);
        let queued = all.iter().map(|one| (labels(one), one.queued.get()));
        page.rows(&QUEUED, queued);
        let running = all.iter().map(|one| (labels(one), one.running.get()));
        page.rows(&RUNNING, running);
    }
}

/// As upstream names work queues: `node_ipam` for the node IPAM controller.
fn label(controller: &str) -> String {
    let mut suffixes = [" controller", " controllers"].into_iter();
    let name = suffixes.find_map(|suffix| controller.strip_suffix(suffix));
    let name = name.unwrap_or(controller).to_lowercase();
    name.replace([' ', '-'], "_")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn labels_are_the_names_of_work_queues() {
        for (controller, expected) in [
            ("daemonset controller", "daemonset"),
            ("node IPAM controller", "node_ipam"),
            ("endpoints controllers", "endpoints"),
            ("control-plane role controller", "control_plane_role"),
            ("scheduler", "scheduler"),
        ] {
            assert_eq!(label(controller), expected);
        }
    }

    #[test]
    fn a_restarted_controller_continues_its_counts() {
        let metrics = Metrics::default();
        for running in [3, 2] {
            metrics.of("test controller").observe(&Round {
                took: Duration::from_millis(250),
                queued: 1,
                running,
                limit: 4,
            });
        }
        let page = Page::of([&metrics as &dyn Observed]);
        for line in [
            "kennel_controller_rounds_total{name=\"test\"} 2",
            "kennel_controller_round_seconds_total{name=\"test\"} 0.5",
            "workqueue_depth{name=\"test\"} 1",
            "kennel_controller_jobs_running{name=\"test\"} 2",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        }
    }
}
