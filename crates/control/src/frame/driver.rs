//! The loop that drives a controller.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kennel_client::Error;
use kennel_client::clock::Clock;
use kennel_client::pulse;
use kennel_types::Monotonic;
use tokio::time::Instant;

use super::watches::Signal;
use super::{Context, Controller, HEARTBEAT, Setup, Watches};

/// What ended a wait.
enum Wakeup<E, O> {
    Watched(Vec<Signal<E>>),
    Completed(O),
    Deadline,
    FenceOpened,
}

/// Runs a controller until `setup.stop` is cancelled. Boxed, so that the controller is compiled once, in its own crate: the
/// code of an `async fn` is generated again in each crate that polls it.
pub fn run<C: Controller>(
    controller: C,
    watches: Watches<C::Event>,
    setup: Setup,
) -> BoxFuture<'static, Result<(), Error>> {
    run_unboxed(controller, watches, setup).boxed()
}

async fn run_unboxed<C: Controller>(
    mut controller: C,
    watches: Watches<C::Event>,
    setup: Setup,
) -> Result<(), Error> {
    let name = controller.name();
    tracing::info!("{name} started");
    let mut cx = Context::new(watches, controller.pace());
    let result = drive(&mut controller, &mut cx, &setup).await;
    if result.is_ok() {
        cx.work.finish().await;
    }
    tracing::debug!("{name} stopped");
    result
}

/// As [`run`], with a future beside it that ends when `setup.stop` is cancelled or the controller is gone: the one that
/// writes the controller's events.
pub fn run_with<C: Controller>(
    controller: C,
    watches: Watches<C::Event>,
    beside: impl Future<Output = ()> + Send + 'static,
    setup: Setup,
) -> BoxFuture<'static, Result<(), Error>> {
    async move { tokio::join!(run_unboxed(controller, watches, setup), beside).0 }.boxed()
}

async fn drive<C: Controller>(
    controller: &mut C,
    cx: &mut Context<C>,
    Setup {
        fence,
        metrics,
        stop,
    }: &Setup,
) -> Result<(), Error> {
    let metrics = metrics.of(controller.name());
    let mut led = fence.is_open();
    cx.work.pause(!led);
    controller.start(cx);
    if cx.is_synced() {
        controller.synced(cx);
    }
    loop {
        pulse::beat();
        let heartbeat = cx.now() + HEARTBEAT;
        let leads = fence.is_open();
        cx.work.pause(!leads);
        let deadline = (leads && cx.is_synced()).then(|| controller.next_deadline(&cx.clock));
        let deadline = deadline.flatten().unwrap_or(heartbeat);
        let wakeup = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            batch = cx.watches.next_batch() => Wakeup::Watched(batch),
            outcome = cx.work.next() => Wakeup::Completed(outcome),
            () = wait(cx.clock, deadline.min(heartbeat)) => Wakeup::Deadline,
            () = fence.wait_open(), if !leads => Wakeup::FenceOpened,
        };
        let began = Instant::now();
        match wakeup {
            Wakeup::Watched(batch) => {
                if let Some(resource) = handle(controller, cx, batch) {
                    let stopped = stop.is_cancelled();
                    return if stopped {
                        Ok(())
                    } else {
                        Err(Error::WatchEnded(resource))
                    };
                }
            }
            Wakeup::Completed(outcome) => controller.completed(outcome, cx),
            Wakeup::Deadline | Wakeup::FenceOpened => {}
        }
        let leads = fence.is_open();
        if leads && !led {
            controller.elected(cx);
        }
        led = leads;
        if leads && cx.is_synced() {
            controller.reconcile(cx);
        }
        let round = cx.round(began.elapsed());
        metrics.observe(&round);
        controller.observe(&round);
    }
}

/// Handles one round of events. Returns the resource whose watch has ended, if one has.
fn handle<C: Controller>(
    controller: &mut C,
    cx: &mut Context<C>,
    batch: Vec<Signal<C::Event>>,
) -> Option<&'static str> {
    for signal in batch {
        match signal {
            Signal::Event(event) => controller.handle(event, cx),
            Signal::Synced(watch) => {
                if cx.watches.sync(watch) {
                    controller.synced(cx);
                }
            }
            Signal::Ended(resource) => return Some(resource),
        }
    }
    None
}

/// Waits until a deadline. One that has passed only yields: a timer would round it up to a millisecond.
async fn wait(clock: Clock, deadline: Monotonic) {
    if deadline <= clock.monotonic() {
        tokio::task::yield_now().await;
    } else {
        clock.sleep_until(deadline).await;
    }
}

#[cfg(test)]
mod tests;
