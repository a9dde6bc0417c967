//! Windows, rates, and the text of metrics.

use kennel_core::pod::{Observed, Sandbox};
use serde_json::json;

use super::*;
use crate::kubelet_api::tests::stub_runtime::StubRuntime;
use crate::pods::{Origin, Pod};

const SECOND: u64 = 1_000_000_000;

fn sample(at: Instant, seconds: u64, cpu: u64) -> Arc<Sample> {
    let usage = Usage {
        pod: "u".to_owned(),
        container: "c".to_owned(),
        id: "c1".to_owned(),
        cgroup: "kennel/test/absent".to_owned(),
        memory: 4096,
        cpu,
        disk: None,
    };
    Arc::new(Sample {
        time: Timestamp::from_secs(1_700_000_000) + Duration::from_secs(seconds),
        measured: at + Duration::from_secs(seconds),
        cpu: Some(10 * cpu),
        memory: Some(Reading {
            available: 3000,
            capacity: 10_000,
        }),
        containers: vec![usage],
    })
}

fn pod() -> Arc<CachedPod> {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    });
    let run = Run {
        name: "c".to_owned(),
        id: "c1".to_owned(),
        attempt: 0,
        sandbox: "s".to_owned(),
        image: "i:1".to_owned(),
        image_id: String::new(),
        state: State::Running {
            started_at: Timestamp::from_millis(1_700_000_005_500),
        },
    };
    Arc::new(CachedPod {
        pod: Arc::new(Pod::parse(object, Origin::Api).unwrap()),
        observed: Observed {
            sandbox: Some(Sandbox::default()),
            runs: vec![run],
        },
        status: json!({"startTime": "2023-11-14T22:13:20Z"}),
    })
}

#[tokio::test(start_paused = true)]
async fn a_window_is_long_enough_and_not_too_long() {
    let start = Instant::now();
    let samples: VecDeque<_> = [0, 30, 85, 92].map(|at| sample(start, at, 0)).into();
    let check = |now: u64, expected: Option<u64>| {
        let now = start + Duration::from_secs(now);
        let found = reference(&samples, now).map(|found| (found.measured - start).as_secs());
        assert_eq!(found, expected, "{now:?}");
    };
    // The newest of at least ten seconds, or the oldest of less.
    check(88, Some(30));
    check(93, Some(85));
    check(95, Some(85));
    check(150, Some(92));
    check(200, None);
}

#[tokio::test(start_paused = true)]
async fn the_first_request_measures_twice_and_later_ones_once() {
    let (meter, runtime) = (Meter::default(), StubRuntime::default());
    let measured = || runtime.measured.load(std::sync::atomic::Ordering::Relaxed);
    let rate = |compared: &Comparison| {
        let rate = compared.of_container(&compared.latest.containers[0], None);
        let rate = rate.unwrap();
        // In hundredths of a core: the timer may be late by a millisecond.
        let hundredths = (rate.nano_cores + SECOND / 200) / (SECOND / 100);
        (hundredths, rate.window.as_secs())
    };
    let first = meter.compared(&runtime).await.unwrap();
    assert_eq!((measured(), rate(&first)), (2, (100, 1)));
    // At the same time, and of the same measurement.
    meter.latest(&runtime).await.unwrap();
    meter.compared(&runtime).await.unwrap();
    assert_eq!(measured(), 2);
    tokio::time::advance(Duration::from_secs(20)).await;
    let later = meter.compared(&runtime).await.unwrap();
    assert_eq!((measured(), rate(&later)), (3, (5, 20)));
    // A long time later there is nothing to compare with.
    tokio::time::advance(Duration::from_hours(1)).await;
    let later = meter.compared(&runtime).await.unwrap();
    assert_eq!((measured(), rate(&later)), (5, (100, 1)));
    assert_eq!(meter.samples.lock().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_container_without_an_earlier_measurement_counts_from_its_start() {
    let start = Instant::now();
    let mut earlier = sample(start, 0, 0);
    Arc::get_mut(&mut earlier).unwrap().containers.clear();
    let compared = Comparison {
        earlier,
        latest: sample(start, 10, 3 * SECOND),
    };
    let usage = &compared.latest.containers[0];
    let started = |seconds| Some(compared.earlier.time + Duration::from_secs(seconds));
    let rate = compared.of_container(usage, started(4)).unwrap();
    assert_eq!(
        (rate.nano_cores, rate.window.as_secs()),
        (SECOND / 2, 6),
        "three seconds of CPU time in six"
    );
    let long_ago = Some(Timestamp::from_secs(1_600_000_000));
    assert_eq!(compared.of_container(usage, long_ago), None);
    assert_eq!(compared.of_container(usage, None), None);
    // A counter that was reset has no rate.
    assert_eq!(Rate::of(5, 4, Duration::from_secs(1)), None);
    assert_eq!(Rate::of(4, 5, Duration::ZERO), None);
}

#[tokio::test(start_paused = true)]
async fn a_summary_has_node_pods_and_containers() {
    let start = Instant::now();
    let compared = Comparison {
        earlier: sample(start, 0, SECOND),
        latest: sample(start, 10, 2 * SECOND),
    };
    let summary = summary(&Contents {
        node: "n1",
        pods: vec![pod()],
        compared: &compared,
        disks: [("c1".to_owned(), 512)].into(),
    });
    let time = "2023-11-14T22:13:30Z";
    let cpu = json!({"time": time, "usageCoreNanoSeconds": 2 * SECOND,
        "usageNanoCores": SECOND / 10, "windowNanoSeconds": 10 * SECOND});
    let memory = json!({"time": time, "workingSetBytes": 4096});
    let expected = json!({
        "node": {
            "nodeName": "n1",
            "cpu": {"time": time, "usageCoreNanoSeconds": 20 * SECOND, "usageNanoCores": SECOND,
                "windowNanoSeconds": 10 * SECOND},
            "memory": {"time": time, "workingSetBytes": 7000, "availableBytes": 3000},
        },
        "pods": [{
            "podRef": {"name": "p", "namespace": "ns", "uid": "u"},
            "startTime": "2023-11-14T22:13:20Z",
            "cpu": cpu, "memory": memory,
            "containers": [{
                "name": "c", "startTime": "2023-11-14T22:13:25Z", "cpu": cpu, "memory": memory,
                "rootfs": {"time": time, "usedBytes": 512},
            }],
        }],
    });
    assert_eq!(summary, expected);
}

#[tokio::test(start_paused = true)]
async fn resource_metrics_are_upstreams() {
    let sample = sample(Instant::now(), 10, SECOND / 4);
    let page = resource_page(Some(&sample), &[pod()]);
    let samples: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    let of = "container=\"c\",pod=\"p\",namespace=\"ns\"";
    let expected = [
        format!("container_cpu_usage_seconds_total{{{of}}} 0.25 1700000010000"),
        format!("container_memory_working_set_bytes{{{of}}} 4096 1700000010000"),
        format!("container_start_time_seconds{{{of}}} 1700000005.5"),
        "node_cpu_usage_seconds_total 2.5 1700000010000".to_owned(),
        "node_memory_working_set_bytes 7000 1700000010000".to_owned(),
        "pod_cpu_usage_seconds_total{pod=\"p\",namespace=\"ns\"} 0.25 1700000010000".to_owned(),
        "pod_memory_working_set_bytes{pod=\"p\",namespace=\"ns\"} 4096 1700000010000".to_owned(),
        "resource_scrape_error 0".to_owned(),
        "scrape_error 0".to_owned(),
    ];
    assert_eq!(samples, expected);
    let failed = resource_page(None, &[pod()]);
    assert!(failed.contains("\nresource_scrape_error 1\n"), "{failed}");
    assert!(!failed.contains("node_cpu"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn cadvisor_metrics_have_its_labels_and_leave_out_what_is_unknown() {
    let sample = sample(Instant::now(), 10, SECOND / 4);
    let page = cadvisor_page(&sample, &[self::pod()], std::path::Path::new("/"));
    let labels = "id=\"/kennel/test/absent\",image=\"i:1\",name=\"c1\",namespace=\"ns\",pod=\"p\"";
    let machine = "id=\"/\",image=\"\",name=\"\",namespace=\"\",pod=\"\"";
    let pod = "id=\"/kennel/test\",image=\"\",name=\"\",namespace=\"ns\",pod=\"p\"";
    for line in [
        format!("container_cpu_usage_seconds_total{{container=\"\",cpu=\"total\",{machine}}} 2.5"),
        format!("container_cpu_usage_seconds_total{{container=\"c\",cpu=\"total\",{labels}}} 0.25"),
        format!("container_memory_working_set_bytes{{container=\"\",{machine}}} 7000"),
        format!("container_memory_working_set_bytes{{container=\"c\",{labels}}} 4096"),
        format!("container_start_time_seconds{{container=\"c\",{labels}}} 1700000005.5"),
        format!("container_cpu_usage_seconds_total{{container=\"\",cpu=\"total\",{pod}}} 0.25"),
        format!("container_memory_working_set_bytes{{container=\"\",{pod}}} 4096"),
        format!("container_last_seen{{container=\"\",{machine}}} 1700000010"),
        format!("container_last_seen{{container=\"c\",{labels}}} 1700000010"),
        "# TYPE container_network_receive_bytes_total counter".to_owned(),
        "# TYPE machine_cpu_cores gauge".to_owned(),
    ] {
        assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
    }
    for name in ["container_fs_limit_bytes", "container_fs_usage_bytes"] {
        let start = format!("{name}{{container=\"\",device=\"");
        let mut rows = page.lines().filter(|line| line.starts_with(name));
        let row = rows.next().unwrap();
        assert!(row.starts_with(&start) && row.contains(machine), "{row}");
        assert_eq!(rows.next(), None, "the machine alone has {name}");
    }
    // There is no such cgroup.
    for unknown in [
        "container_memory_rss{",
        "container_oom_events_total{",
        "container_processes{",
        "container_spec_cpu_quota{",
        "container_threads{",
    ] {
        assert!(!page.contains(unknown), "{unknown} in\n{page}");
    }
}
