//! The scheduler's metrics, under upstream's names where there are any.

use kennel_client::metrics::{Counter, Gauge, Observed, Page};

kennel_core::metrics! {
    pub METRICS;
    Counter ATTEMPTS = "scheduler_schedule_attempts_total" ["profile" "result"]
        "Attempts to schedule pods, by result.";
    Gauge PENDING = "scheduler_pending_pods" ["queue"] "Pods that are not scheduled yet.";
    Counter PREEMPTIONS = "scheduler_preemption_attempts_total" []
        "Preemption attempts.";
    Counter VICTIMS = "kennel_scheduler_victims_total" []
        "Pods that were preempted.";
}

/// The metrics of one scheduler.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(super) scheduled: Counter,
    pub(super) unschedulable: Counter,
    pub(super) errors: Counter,
    pub(super) preemptions: Counter,
    pub(super) victims: Counter,
    pub(super) active: Gauge,
    pub(super) waiting: Gauge,
    pub(super) gated: Gauge,
}

impl Metrics {
    pub(super) fn pending(&self, (active, waiting, gated): (usize, usize, usize)) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.active.set(number(active));
        self.waiting.set(number(waiting));
        self.gated.set(number(gated));
    }
}

impl Observed for Metrics {
    fn show(&self, page: &mut Page) {
        let attempts = [
            ("scheduled", &self.scheduled),
            ("unschedulable", &self.unschedulable),
            ("error", &self.errors),
        ];
        let attempts = attempts.map(|(result, count)| {
            let labels = format!("profile=\"default-scheduler\",result=\"{result}\"");
            (labels, count.get())
        });
        page.rows(&ATTEMPTS, attempts);
        let pending = [
            ("queue=\"active\"", self.active.get()),
            ("queue=\"unschedulable\"", self.waiting.get()),
            ("queue=\"gated\"", self.gated.get()),
        ];
        page.rows(&PENDING, pending);
        page.number(&PREEMPTIONS, self.preemptions.get());
        page.number(&VICTIMS, self.victims.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_upstreams_names() {
        let metrics = Metrics::default();
        metrics.scheduled.increment();
        metrics.pending((1, 2, 3));
        let page = Page::of([&metrics as &dyn Observed]);
        for line in [
            "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 1",
            "scheduler_pending_pods{queue=\"unschedulable\"} 2",
            "scheduler_pending_pods{queue=\"gated\"} 3",
            "scheduler_preemption_attempts_total 0",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        }
    }
}
