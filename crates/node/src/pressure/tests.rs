//! A machine that runs out of things, under a clock that does not wait.

use std::sync::Mutex;

use kennel_core::pod::eviction::Reading;
use kennel_core::pod::{Observed, Run, State};
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::pods::Pod;

/// A machine of the test's own making.
#[derive(Default)]
struct Fake {
    readings: Mutex<Readings>,
    usage: Mutex<BTreeMap<String, Used>>,
    /// What the disk has once everything useless is gone.
    after_reclaim: Mutex<Option<u64>>,
}

#[async_trait]
impl Meter for Fake {
    async fn read(&self) -> Readings {
        self.readings.lock().unwrap().clone()
    }
    async fn usage(&self, _: &[Arc<CachedPod>], _: bool) -> BTreeMap<String, Used> {
        self.usage.lock().unwrap().clone()
    }
    async fn reclaim(&self, _: &[Arc<CachedPod>]) {
        if let Some(available) = *self.after_reclaim.lock().unwrap() {
            self.set(Signal::NodeDisk, available);
        }
    }
    fn is_split(&self) -> bool {
        false
    }
}

impl Fake {
    /// So much of 1 GiB is left.
    fn set(&self, signal: Signal, available: u64) {
        let capacity = 1 << 30;
        let reading = Reading {
            available,
            capacity,
        };
        self.readings.lock().unwrap().insert(signal, reading);
    }
}

struct Bench {
    meter: Arc<Fake>,
    directory: Arc<PodCache>,
    ordered: mpsc::Receiver<Command>,
    pressures: watch::Receiver<Pressures>,
    stop: CancellationToken,
}

impl Bench {
    fn start(prepare: impl FnOnce(&Fake, &PodCache)) -> Self {
        Self::over(eviction::defaults(), prepare)
    }

    fn over(thresholds: Vec<Threshold>, prepare: impl FnOnce(&Fake, &PodCache)) -> Self {
        let (meter, directory) = (Arc::new(Fake::default()), Arc::new(PodCache::default()));
        prepare(&meter, &directory);
        let (orders, ordered) = CommandSender::channel();
        let (sender, pressures) = watch::channel(Pressures::default());
        let pressure = Pressure {
            meter: Arc::clone(&meter) as Arc<dyn Meter>,
            directory: Arc::clone(&directory),
            orders,
            node_name: "n".to_owned(),
            events: None,
            max_pod_grace: Duration::from_secs(7),
            thresholds,
            pressures: sender,
            metrics: Arc::default(),
        };
        let stop = CancellationToken::new();
        tokio::spawn(keep(pressure, stop.clone()));
        Self {
            meter,
            directory,
            ordered,
            pressures,
            stop,
        }
    }

    /// Who is evicted next, within a time, and what it is told.
    async fn evicted(&mut self, within: Duration) -> Option<(String, String)> {
        let (uid, message, grace) = self.next(within).await?;
        assert_eq!(grace, GRACE);
        Some((uid, message))
    }

    /// The same, and how long it gets to end.
    async fn next(&mut self, within: Duration) -> Option<(String, String, Duration)> {
        match tokio::time::timeout(within, self.ordered.recv()).await {
            Ok(Some(Command::Evict {
                uid,
                verdict,
                grace,
            })) => {
                assert_eq!(verdict.reason, "Evicted");
                Some((uid, verdict.message, grace))
            }
            Ok(other) => panic!("another order: {other:?}"),
            Err(_) => None,
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn view(uid: &str, priority: i64, origin: Origin) -> CachedPod {
    let object = json!({"metadata": {"namespace": "ns", "name": uid, "uid": uid}, "spec": {
        "priority": priority, "containers": [{"name": "c"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]}});
    let run = Run {
        name: "c".to_owned(),
        id: uid.to_owned(),
        attempt: 0,
        sandbox: String::new(),
        image: String::new(),
        image_id: String::new(),
        state: State::Running {
            started_at: kennel_types::Timestamp::EPOCH,
        },
    };
    CachedPod {
        pod: Arc::new(Pod::parse(object, origin).unwrap()),
        observed: Observed {
            runs: vec![run],
            ..Observed::default()
        },
        status: Value::Null,
    }
}

fn uses(memory: u64, volume: u64) -> Used {
    Used {
        containers: vec![ContainerUsage {
            name: "c".to_owned(),
            memory,
            ..ContainerUsage::default()
        }],
        volumes: BTreeMap::from([("v".to_owned(), volume)]),
        inodes: 1,
    }
}

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn one_pod_at_a_time_goes_until_there_is_enough() {
    let mut bench = Bench::start(|meter, directory| {
        meter.set(Signal::Memory, 50 << 20);
        for (uid, priority, memory) in [("a", 0, 10), ("b", 0, 20), ("c", 100, 900)] {
            directory.set(view(uid, priority, Origin::Api));
            meter
                .usage
                .lock()
                .unwrap()
                .insert(uid.to_owned(), uses(memory << 20, 0));
        }
        directory.set(view("critical", 2_000_000_000, Origin::Api));
        directory.set(view("static", 0, Origin::File));
    });
    let (first, message) = bench.evicted(MINUTE).await.unwrap();
    assert_eq!(first, "b");
    assert_eq!(
        message,
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was \
         using 20Mi, request is 0, has larger consumption of memory. "
    );
    assert!(bench.pressures.borrow().memory);
    // It is still there: nobody else has to go before it had its time.
    assert_eq!(bench.evicted(ENDED / 2).await, None);
    bench.directory.remove("b");
    assert_eq!(bench.evicted(MINUTE).await.unwrap().0, "a");
    bench.meter.set(Signal::Memory, 500 << 20);
    bench.directory.remove("a");
    assert_eq!(bench.evicted(10 * MINUTE).await, None);
    assert_eq!(*bench.pressures.borrow(), Pressures::default());
}

#[tokio::test(start_paused = true)]
async fn critical_pods_stay_whatever_happens() {
    let mut bench = Bench::start(|meter, directory| {
        meter.set(Signal::Memory, 0);
        directory.set(view("critical", 2_000_000_000, Origin::Api));
        directory.set(view("static", 0, Origin::File));
        let huge = uses(1 << 30, 1 << 30);
        for uid in ["critical", "static"] {
            meter
                .usage
                .lock()
                .unwrap()
                .insert(uid.to_owned(), huge.clone());
        }
    });
    assert_eq!(bench.evicted(10 * MINUTE).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_cleared_before_anybody_goes() {
    let mut bench = Bench::start(|meter, directory| {
        meter.set(Signal::NodeDisk, 1 << 20);
        *meter.after_reclaim.lock().unwrap() = Some(1 << 29);
        directory.set(view("a", 0, Origin::Api));
    });
    assert_eq!(bench.evicted(2 * MINUTE).await, None);
    assert!(bench.pressures.borrow().disk, "for a while");
    assert_eq!(bench.evicted(5 * MINUTE).await, None);
    assert!(!bench.pressures.borrow().disk);

    *bench.meter.after_reclaim.lock().unwrap() = None;
    bench.meter.set(Signal::NodeDisk, 1 << 20);
    let (uid, message) = bench.evicted(MINUTE).await.unwrap();
    assert_eq!(uid, "a");
    let start = "The node was low on resource: ephemeral-storage. Threshold quantity: ";
    assert!(message.starts_with(start), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_volume_over_its_limit_costs_its_pod_its_place() {
    let mut bench = Bench::start(|meter, directory| {
        directory.set(view("a", 0, Origin::Api));
        let within = uses(0, 1 << 20);
        meter.usage.lock().unwrap().insert("a".to_owned(), within);
    });
    assert_eq!(bench.evicted(MINUTE).await, None);
    let over = uses(0, (1 << 20) + 1);
    bench
        .meter
        .usage
        .lock()
        .unwrap()
        .insert("a".to_owned(), over);
    let (uid, message) = bench.evicted(MINUTE).await.unwrap();
    assert_eq!(uid, "a");
    assert_eq!(
        message,
        "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". "
    );
}

#[tokio::test(start_paused = true)]
async fn a_soft_threshold_has_patience() {
    let soft = eviction::parse("memory.available<200Mi").unwrap();
    let patience = [(Signal::Memory, Duration::from_mins(2))];
    let soft = eviction::with_grace_periods(&soft, &patience).unwrap();
    let began = Instant::now();
    let mut bench = Bench::over(soft, |meter, directory| {
        meter.set(Signal::Memory, 150 << 20);
        directory.set(view("a", 0, Origin::Api));
    });
    bench.pressures.changed().await.unwrap();
    assert!(bench.pressures.borrow().memory, "it is told at once");
    let (uid, _, grace) = bench.next(Duration::from_mins(5)).await.unwrap();
    assert_eq!(uid, "a");
    let waited = began.elapsed();
    assert!(waited >= Duration::from_mins(2), "{waited:?}");
    assert!(waited < Duration::from_secs(140), "{waited:?}");
    // Its own grace period is longer than the longest that it gets.
    assert_eq!(grace, Duration::from_secs(7));
}
