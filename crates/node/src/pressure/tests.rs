//! Evictions on a fake machine, with a paused clock.

use std::sync::Mutex;

use kennel_core::pod::eviction::Reading;
use kennel_core::pod::{Observed, Run, State};
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::pods::Pod;

#[derive(Default)]
struct FakeMeter {
    readings: Mutex<Readings>,
    usage: Mutex<BTreeMap<String, Used>>,
    /// Free bytes of the disk after reclaiming.
    after_reclaim: Mutex<Option<u64>>,
}

#[async_trait]
impl Meter for FakeMeter {
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

impl FakeMeter {
    /// `available` bytes of 1 GiB.
    fn set(&self, signal: Signal, available: u64) {
        let capacity = 1 << 30;
        let reading = Reading {
            available,
            capacity,
        };
        self.readings.lock().unwrap().insert(signal, reading);
    }
}

struct Fixture {
    meter: Arc<FakeMeter>,
    cache: Arc<PodCache>,
    commands: mpsc::Receiver<Command>,
    pressures: watch::Receiver<Pressures>,
    stop: CancellationToken,
}

impl Fixture {
    fn start(prepare: impl FnOnce(&FakeMeter, &PodCache)) -> Self {
        Self::with(eviction::defaults(), prepare)
    }

    fn with(thresholds: Vec<Threshold>, prepare: impl FnOnce(&FakeMeter, &PodCache)) -> Self {
        let (meter, cache) = (
            Arc::new(FakeMeter::default()),
            Arc::new(PodCache::default()),
        );
        prepare(&meter, &cache);
        let (commands, received) = CommandSender::channel();
        let (sender, pressures) = watch::channel(Pressures::default());
        let pressure = Pressure {
            meter: Arc::clone(&meter) as Arc<dyn Meter>,
            cache: Arc::clone(&cache),
            commands,
            node_name: "n".to_owned(),
            events: None,
            max_pod_grace: Duration::from_secs(7),
            thresholds,
            pressures: sender,
            metrics: Arc::default(),
        };
        let stop = CancellationToken::new();
        tokio::spawn(run(pressure, stop.clone()));
        Self {
            meter,
            cache,
            commands: received,
            pressures,
            stop,
        }
    }

    /// The uid and message of the next eviction.
    async fn evicted(&mut self, within: Duration) -> Option<(String, String)> {
        let (uid, message, grace) = self.next(within).await?;
        assert_eq!(grace, HARD_EVICTION_GRACE_PERIOD);
        Some((uid, message))
    }

    /// The uid, message and grace period of the next eviction.
    async fn next(&mut self, within: Duration) -> Option<(String, String, Duration)> {
        match tokio::time::timeout(within, self.commands.recv()).await {
            Ok(Some(Command::Evict {
                uid,
                failure,
                grace,
            })) => {
                assert_eq!(failure.reason, "Evicted");
                Some((uid, failure.message, grace))
            }
            Ok(other) => panic!("unexpected command: {other:?}"),
            Err(_) => None,
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn cached_pod(uid: &str, priority: i64, origin: Origin) -> CachedPod {
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
async fn one_pod_at_a_time_is_evicted_until_enough_is_free() {
    let mut fixture = Fixture::start(|meter, cache| {
        meter.set(Signal::Memory, 50 << 20);
        for (uid, priority, memory) in [("a", 0, 10), ("b", 0, 20), ("c", 100, 900)] {
            cache.set(cached_pod(uid, priority, Origin::Api));
            meter
                .usage
                .lock()
                .unwrap()
                .insert(uid.to_owned(), uses(memory << 20, 0));
        }
        cache.set(cached_pod("critical", 2_000_000_000, Origin::Api));
        cache.set(cached_pod("static", 0, Origin::File));
    });
    let (first, message) = fixture.evicted(MINUTE).await.unwrap();
    assert_eq!(first, "b");
    assert_eq!(
        message,
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was \
         using 20Mi, request is 0, has larger consumption of memory. "
    );
    assert!(fixture.pressures.borrow().memory);
    // It still runs: no other pod is evicted before the timeout.
    assert_eq!(fixture.evicted(EVICTION_TIMEOUT / 2).await, None);
    fixture.cache.remove("b");
    assert_eq!(fixture.evicted(MINUTE).await.unwrap().0, "a");
    fixture.meter.set(Signal::Memory, 500 << 20);
    fixture.cache.remove("a");
    assert_eq!(fixture.evicted(10 * MINUTE).await, None);
    assert_eq!(*fixture.pressures.borrow(), Pressures::default());
}

#[tokio::test(start_paused = true)]
async fn critical_pods_are_not_evicted() {
    let mut fixture = Fixture::start(|meter, cache| {
        meter.set(Signal::Memory, 0);
        cache.set(cached_pod("critical", 2_000_000_000, Origin::Api));
        cache.set(cached_pod("static", 0, Origin::File));
        let huge = uses(1 << 30, 1 << 30);
        for uid in ["critical", "static"] {
            meter
                .usage
                .lock()
                .unwrap()
                .insert(uid.to_owned(), huge.clone());
        }
    });
    assert_eq!(fixture.evicted(10 * MINUTE).await, None);
}

#[tokio::test(start_paused = true)]
async fn disk_space_is_reclaimed_before_pods_are_evicted() {
    let mut fixture = Fixture::start(|meter, cache| {
        meter.set(Signal::NodeDisk, 1 << 20);
        *meter.after_reclaim.lock().unwrap() = Some(1 << 29);
        cache.set(cached_pod("a", 0, Origin::Api));
    });
    assert_eq!(fixture.evicted(2 * MINUTE).await, None);
    assert!(fixture.pressures.borrow().disk, "for a while");
    assert_eq!(fixture.evicted(5 * MINUTE).await, None);
    assert!(!fixture.pressures.borrow().disk);

    *fixture.meter.after_reclaim.lock().unwrap() = None;
    fixture.meter.set(Signal::NodeDisk, 1 << 20);
    let (uid, message) = fixture.evicted(MINUTE).await.unwrap();
    assert_eq!(uid, "a");
    let start = "The node was low on resource: ephemeral-storage. Threshold quantity: ";
    assert!(message.starts_with(start), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_volume_over_its_size_limit_evicts_its_pod() {
    let mut fixture = Fixture::start(|meter, cache| {
        cache.set(cached_pod("a", 0, Origin::Api));
        let within = uses(0, 1 << 20);
        meter.usage.lock().unwrap().insert("a".to_owned(), within);
    });
    assert_eq!(fixture.evicted(MINUTE).await, None);
    let over = uses(0, (1 << 20) + 1);
    fixture
        .meter
        .usage
        .lock()
        .unwrap()
        .insert("a".to_owned(), over);
    let (uid, message) = fixture.evicted(MINUTE).await.unwrap();
    assert_eq!(uid, "a");
    assert_eq!(
        message,
        "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". "
    );
}

#[tokio::test(start_paused = true)]
async fn a_soft_threshold_evicts_after_its_grace_period() {
    let soft = eviction::parse("memory.available<200Mi").unwrap();
    let patience = [(Signal::Memory, Duration::from_mins(2))];
    let soft = eviction::with_grace_periods(&soft, &patience).unwrap();
    let started = Instant::now();
    let mut fixture = Fixture::with(soft, |meter, cache| {
        meter.set(Signal::Memory, 150 << 20);
        cache.set(cached_pod("a", 0, Origin::Api));
    });
    fixture.pressures.changed().await.unwrap();
    assert!(fixture.pressures.borrow().memory, "it is reported at once");
    let (uid, _, grace) = fixture.next(Duration::from_mins(5)).await.unwrap();
    assert_eq!(uid, "a");
    let waited = started.elapsed();
    assert!(waited >= Duration::from_mins(2), "{waited:?}");
    assert!(waited < Duration::from_secs(140), "{waited:?}");
    // The pod's own grace period is longer than the maximum.
    assert_eq!(grace, Duration::from_secs(7));
}
