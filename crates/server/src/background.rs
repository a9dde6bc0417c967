//! Background tasks, which run as long as the server does. When one panics, the process ends: otherwise its work would stop
//! without notice.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::task::JoinHandle;

#[derive(Default)]
pub(crate) struct Background(Vec<(&'static str, JoinHandle<()>)>);

impl Background {
    /// `work` says what the task does.
    pub(crate) fn spawn(
        &mut self,
        work: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.0.push((work, tokio::spawn(task)));
    }

    /// Waits until a task has ended, and says what it did. They end only by a panic, or while the server stops.
    pub(crate) async fn ended(&mut self) -> &'static str {
        poll_fn(|context| {
            let mut tasks = self.0.iter_mut();
            let ended = tasks.find_map(|(work, task)| {
                // A task that has ended must not be polled again.
                let has_ended = task.is_finished() || Pin::new(task).poll(context).is_ready();
                has_ended.then_some(*work)
            });
            ended.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Waits until all tasks have ended by themselves.
    pub(crate) async fn join(self) {
        for (work, task) in self.0 {
            if let Err(error) = task.await {
                tracing::warn!(%error, "the task of the server that {work} failed");
            }
        }
    }

    /// As if this task had ended by a panic.
    #[cfg(test)]
    pub(crate) fn abort_one(&self, work: &str) {
        for (_, task) in self.0.iter().filter(|(name, _)| *name == work) {
            task.abort();
        }
    }

    pub(crate) fn abort(&self) {
        for (_, task) in &self.0 {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_named() {
        let mut background = Background::default();
        let long = std::time::Duration::from_hours(1);
        let waited = tokio::time::timeout(long, background.ended()).await;
        assert!(waited.is_err(), "there is none");
        background.spawn("waits", std::future::pending());
        background.spawn("counts", async {
            tokio::time::sleep(std::time::Duration::from_mins(1)).await;
            panic!("on purpose");
        });
        assert_eq!(background.ended().await, "counts");
        assert_eq!(background.ended().await, "counts", "it stays ended");
    }
}
