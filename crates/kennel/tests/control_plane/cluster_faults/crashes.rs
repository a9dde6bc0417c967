//! The server is killed under load, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kennel_testkit::{Access, Controller};
use serde_json::Value;

use crate::cluster_faults::fixture::{BINARY, Fixture, SETS, daemon_set};

const NODES: usize = 12;
const CRASHES: usize = 4;
/// How long it lives at most between two crashes: about as long as a rollout here takes.
const LIFE_MS: u64 = 400;

/// Changes the DaemonSet `busy` again and again, also while the server is down, until it is stopped.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn on(admin: Access) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (told, count) = (stop.clone(), answered.clone());
        let thread = thread::spawn(move || {
            for number in 0.. {
                if told.load(Ordering::Acquire) {
                    return;
                }
                let Ok(mut wire) = admin.open() else {
                    continue;
                };
                let image = format!("image-{}", number % 3);
                let body = daemon_set("busy", &image).to_string();
                let path = format!("{SETS}/busy");
                let answer = wire.ask("PUT", &path, "application/json", body.as_bytes());
                if answer.is_ok_and(|reply| reply.code == 200) {
                    count.fetch_add(1, Ordering::AcqRel);
                }
            }
        });
        Self {
            stop,
            answered,
            thread: Some(thread),
        }
    }

    /// Ends it, and tells how many changes were made.
    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap();
        self.answered.load(Ordering::Acquire)
    }
}

/// A cluster with a DaemonSet that does not change and one that changes all the time.
fn populated(arguments: &[&str]) -> Fixture {
    let mut fixture = Fixture::start(arguments);
    fixture.create(SETS, &daemon_set("calm", "image"));
    fixture.create(SETS, &daemon_set("busy", "image"));
    fixture
}

/// Kills the server at random moments; what was calm must not have noticed.
fn crash_under_load(mut fixture: Fixture) {
    fixture.converged(NODES);
    let calm = fixture.daemons("calm");
    assert_eq!(calm.len(), NODES);
    let mut random = fastrand::Rng::with_seed(kennel_testkit::fresh_seed());
    for _ in 0..CRASHES {
        let load = Load::on(fixture.admin.clone());
        // Its life is what is tried here, not something that is waited for.
        thread::sleep(Duration::from_millis(random.u64(LIFE_MS / 4..LIFE_MS)));
        fixture = Fixture::of(fixture.kennel.crash_and_come_back());
        load.end();
    }
    fixture.converged(NODES);
    assert_eq!(fixture.daemons("calm"), calm, "what nobody touched stays");
    assert_eq!(fixture.daemons("busy").len(), NODES);
    fixture.tidy();
    assert_eq!(fixture.list("/api/v1/nodes").len(), NODES);
    let deleted = fixture.ask("DELETE", &format!("{SETS}/busy"), &Value::Null);
    assert_eq!(deleted.0, 200);
    fixture.tidy();
    assert!(fixture.daemons("busy").is_empty());
}

#[test]
fn all_in_one_process() {
    let nodes = NODES.to_string();
    crash_under_load(populated(&["up", "--simulate", &nodes]));
}

#[test]
fn with_a_controller_outside() {
    let nodes = NODES.to_string();
    let without = "--controllers=*,-daemonset-controller";
    let fixture = populated(&["up", "--simulate", &nodes, without]);
    let controller = Controller::start(BINARY, &fixture.kennel.kubeconfig(), &[]);
    crash_under_load(fixture);
    assert!(!controller.log().contains("panicked"));
    assert!(controller.stop().success());
}
