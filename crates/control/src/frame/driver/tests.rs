//! The loop, with a controller that records its calls.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::metrics::{Observed, Page};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::Update;
use super::*;

/// Reconciles by a job per pending number, and fails those above 100 the first time.
struct Recording {
    notes: mpsc::Sender<String>,
    pending: Vec<u32>,
    deadline: Option<Monotonic>,
}

impl Recording {
    fn note(&self, text: String) {
        self.notes.try_send(text).unwrap();
    }
}

impl Controller for Recording {
    type Event = Update<u32>;
    type Outcome = (u32, bool);

    fn name(&self) -> &'static str {
        "test controller"
    }

    fn handle(&mut self, event: Update<u32>, _: &mut Context<Self>) {
        if let Update::Applied(number) = event {
            self.pending.push(number);
        }
    }

    fn synced(&mut self, _: &mut Context<Self>) {
        self.note("synced".to_owned());
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        if self.deadline.is_some_and(|at| at <= cx.now()) {
            self.deadline = None;
            self.note("deadline".to_owned());
        }
        for number in self.pending.drain(..) {
            cx.spawn(async move { (number % 100, number < 100) });
        }
    }

    fn completed(&mut self, (number, done): (u32, bool), cx: &mut Context<Self>) {
        self.note(format!("{number} {done}"));
        if !done {
            cx.after(Duration::from_secs(5), (number, true));
        }
    }

    fn next_deadline(&self, _: &Clock) -> Option<Monotonic> {
        self.deadline
    }
}

fn controller() -> (Recording, mpsc::Receiver<String>) {
    let (notes, noted) = mpsc::channel(64);
    let recording = Recording {
        notes,
        pending: Vec::new(),
        deadline: Some(Monotonic::since_start(Duration::from_secs(3))),
    };
    (recording, noted)
}

fn watch(
    watches: &mut Watches<Update<u32>>,
    name: &'static str,
    changes: impl IntoIterator<Item = Change<u32>>,
) -> mpsc::Sender<Change<u32>> {
    let (sender, mut receiver) = mpsc::channel(8);
    let first: Vec<_> = changes.into_iter().collect();
    let later = stream::poll_fn(move |cx| receiver.poll_recv(cx));
    watches.add(name, stream::iter(first).chain(later), |update| update);
    sender
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reconciled_before_every_watch_has_listed() {
    let (controller, mut noted) = controller();
    let mut watches = Watches::default();
    // A watch that lists again does not stand for another one.
    let one = [Change::Applied(1), Change::Synced, Change::Synced];
    let _one = watch(&mut watches, "ones", one);
    let two = watch(&mut watches, "twos", []);
    let stop = CancellationToken::new();
    let running = tokio::spawn(run(controller, watches, Setup::unfenced(stop.clone())));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(noted.try_recv().is_err());
    two.send(Change::Synced).await.unwrap();
    for expected in ["synced", "deadline", "1 true"] {
        assert_eq!(noted.recv().await.unwrap(), expected);
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn failed_jobs_come_back_after_their_delay_and_deadlines_wake_the_loop() {
    let (controller, mut noted) = controller();
    let mut watches = Watches::default();
    let _kept = watch(&mut watches, "ones", [Change::Synced, Change::Applied(107)]);
    let stop = CancellationToken::new();
    let running = tokio::spawn(run(controller, watches, Setup::unfenced(stop.clone())));
    let began = Instant::now();
    for (expected, seconds) in [
        ("synced", 0),
        ("7 false", 0),
        ("deadline", 3),
        ("7 true", 5),
    ] {
        assert_eq!(noted.recv().await.unwrap(), expected);
        assert_eq!(began.elapsed().as_secs(), seconds, "{expected}");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_watch_that_ends_is_an_error_unless_the_controller_is_stopped() {
    let check = async |stopped: bool| {
        let (controller, _noted) = controller();
        let mut watches = Watches::default();
        let _kept = watch(&mut watches, "ones", []);
        drop(watch(&mut watches, "twos", []));
        let stop = CancellationToken::new();
        if stopped {
            stop.cancel();
        }
        run(controller, watches, Setup::unfenced(stop)).await
    };
    let ended = check(false).await.unwrap_err();
    assert_eq!(ended.to_string(), "the watch of twos ended");
    check(true).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_controller_only_watches_while_its_fence_is_closed() {
    let (controller, mut noted) = controller();
    let mut watches = Watches::default();
    let ones = watch(&mut watches, "ones", [Change::Synced, Change::Applied(1)]);
    let (fence, stop) = (Fence::closed(), CancellationToken::new());
    let setup = Setup::new(fence.clone(), stop.clone());
    let metrics = setup.metrics.clone();
    let running = tokio::spawn(run(controller, watches, setup));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(noted.try_recv().unwrap(), "synced");
    assert!(noted.try_recv().is_err(), "the deadline waits, too");
    let began = Instant::now();
    fence.open_from(fence.now(), Duration::from_mins(1));
    for expected in ["deadline", "1 true"] {
        assert_eq!(noted.recv().await.unwrap(), expected);
        assert_eq!(began.elapsed(), Duration::ZERO, "{expected}");
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    ones.send(Change::Applied(2)).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(noted.try_recv().is_err(), "it does not lead any more");
    fence.open_from(fence.now(), Duration::from_mins(1));
    assert_eq!(noted.recv().await.unwrap(), "2 true");
    stop.cancel();
    running.await.unwrap().unwrap();
    let page = Page::of([&*metrics as &dyn Observed]);
    assert!(
        page.contains("kennel_controller_jobs_running{name=\"test\"} 0"),
        "{page}"
    );
}
