//! The health of an agent: `/healthz` of the kubelet API, with the checks of a kubelet, and the service manager's watchdog.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::pulse;
use kennel_client::pulse::Pulse;
use kennel_core::health::{Outcome, Unhealthy};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::runtime::Runtime;

/// How long the pod manager and its runtime may be silent: as in a kubelet, whose sync loop does not complete an iteration while its
/// runtime is down.
const BOUND: Duration = Duration::from_mins(5);
/// How often the runtime is asked.
const INTERVAL: Duration = Duration::from_secs(10);
/// A runtime that takes longer counts as silent.
const TIMEOUT: Duration = Duration::from_secs(15);

/// See the [module](self).
#[derive(Debug)]
pub struct AgentHealth {
    /// Beaten by the pod manager.
    manager: Arc<Pulse>,
    /// Beaten while the runtime is well.
    runtime: Pulse,
}

impl Default for AgentHealth {
    fn default() -> Self {
        Self::since(Instant::now())
    }
}

impl AgentHealth {
    /// Of an agent whose parts last completed an iteration at this time.
    pub fn since(last: Instant) -> Self {
        Self {
            manager: Arc::new(Pulse::new(last.into_std())),
            runtime: Pulse::new(last.into_std()),
        }
    }

    /// Runs the pod manager, whose loop beats.
    pub(super) async fn watch_manager<F: Future>(self: Arc<Self>, manager: F) -> F::Output {
        pulse::scope(Arc::clone(&self.manager), manager).await
    }

    /// Asks the runtime until `stop`.
    pub(super) async fn watch_runtime(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        stop: CancellationToken,
    ) {
        let watch = async {
            let mut turns = tokio::time::interval(INTERVAL);
            loop {
                turns.tick().await;
                let health = timeout(TIMEOUT, runtime.health()).await;
                if health.is_ok_and(|health| health.runtime.is_none()) {
                    self.runtime.beat(Instant::now().into_std());
                }
            }
        };
        stop.run_until_cancelled(watch).await;
    }

    /// Whether the pod manager completes iterations. A runtime that is down is no reason to restart the agent.
    pub fn is_alive(&self) -> bool {
        self.manager.silence(Instant::now().into_std()) < BOUND
    }

    /// The checks of `/healthz`.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let now = Instant::now().into_std();
        let well = self.manager.silence(now) < BOUND && self.runtime.silence(now) < BOUND;
        // Upstream's words.
        let late = || Unhealthy::new("sync Loop took longer than expected");
        vec![
            Outcome::new("ping", Ok(())),
            Outcome::new("syncloop", if well { Ok(()) } else { Err(late()) }),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::fake::FakeRuntime;

    fn syncloop(health: &AgentHealth) -> bool {
        health.outcomes().remove(1).result.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_whose_runtime_is_down_is_unhealthy_after_a_while() {
        let health = Arc::new(AgentHealth::default());
        let stop = CancellationToken::new();
        let runtime = FakeRuntime::new();
        let watch = Arc::clone(&health).watch_runtime(Arc::new(runtime), stop.clone());
        let watching = tokio::spawn(watch);
        let manager = tokio::spawn(Arc::clone(&health).watch_manager(async {
            loop {
                pulse::beat();
                tokio::time::sleep(INTERVAL).await;
            }
        }));
        tokio::time::sleep(BOUND * 2).await;
        assert!(syncloop(&health) && health.is_alive());
        stop.cancel();
        watching.await.unwrap();
        tokio::time::sleep(BOUND / 2).await;
        assert!(syncloop(&health), "it may be back soon");
        tokio::time::sleep(BOUND / 2).await;
        assert!(!syncloop(&health));
        assert!(health.is_alive(), "a restart would not help");
        manager.abort();
        tokio::time::sleep(BOUND).await;
        assert!(!health.is_alive());
    }
}
