//! Users, capabilities, environment and resource limits of containers.

use kennel_node::runtime::{Capabilities, ContainerConfig, Error, Limits, Runtime as _, Security};

use crate::process_runtime::fixture::{Fixture, nap, processes, script, stdout, until};

#[tokio::test(flavor = "multi_thread")]
async fn users_groups_and_rights_are_what_the_pod_says() {
    let fixture = Fixture::new().await;
    let as_whom = "echo $(id -u) $(id -g) $(id -G); grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status | tr '\\n' ' '";
    let check = async |security: Security, expected: &str| {
        let app = ContainerConfig {
            security: security.clone(),
            ..script(as_whom)
        };
        let found = fixture
            .output(&app)
            .await
            .replace("stdout F ", "")
            .replace(['\t', '\n'], " ");
        let found = found.replace("stdout P ", "");
        assert_eq!(
            found.split_whitespace().collect::<Vec<_>>().join(" "),
            expected,
            "{security:?}"
        );
    };
    check(
        Security::default(),
        "0 0 0 CapEff: 00000000a80425fb CapBnd: 00000000a80425fb NoNewPrivs: 0",
    )
    .await;
    check(
        Security {
            user: Some(1234),
            group: Some(77),
            groups: vec![88, 99],
            no_new_privileges: true,
            ..Security::default()
        },
        "1234 77 77 88 99 CapEff: 0000000000000000 CapBnd: 00000000a80425fb NoNewPrivs: 1",
    )
    .await;
    let capabilities = Capabilities {
        add: vec!["NET_ADMIN".to_owned()],
        drop: vec!["ALL".to_owned()],
    };
    check(
        Security {
            capabilities,
            ..Security::default()
        },
        "0 0 0 CapEff: 0000000000001000 CapBnd: 0000000000001000 NoNewPrivs: 0",
    )
    .await;
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let all = own
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:\t"))
        .unwrap();
    check(
        Security {
            privileged: true,
            ..Security::default()
        },
        &format!("0 0 0 CapEff: {all} CapBnd: {all} NoNewPrivs: 0"),
    )
    .await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_can_open_their_own_stdout() {
    let fixture = Fixture::new().await;
    let app = ContainerConfig {
        security: Security {
            user: Some(1234),
            ..Security::default()
        },
        ..script("echo out > /dev/stdout; echo err > /dev/stderr")
    };
    let log = fixture.output(&app).await;
    assert!(
        log.contains("stdout F out") && log.contains("stderr F err"),
        "{log}"
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_sees_its_own_processes_unless_it_has_the_machines() {
    // The shell itself looks: another process may be there, or gone, at that moment.
    let count = "set -- /proc/[0-9]*; echo $#; echo $$";
    let fixture = Fixture::new().await;
    assert_eq!(
        fixture.output(&script(count)).await,
        "stdout F 1\nstdout F 1\n"
    );
    fixture.end().await;
    let fixture = Fixture::with(|pod| pod.host_pid = true).await;
    let log = fixture.output(&script(count)).await;
    assert!(!log.contains("stdout F 1\n"), "{log}");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_directory_and_host_name_are_what_the_pod_says() {
    let fixture = Fixture::with(|pod| pod.hostname = "some-name".to_owned()).await;
    let app = ContainerConfig {
        env: vec![("GREETING".to_owned(), "hello world".to_owned())],
        working_dir: "/new/place".to_owned(),
        ..script("echo $GREETING; pwd; uname -n; echo $HOSTNAME; env | grep -c KENNEL")
    };
    let exit = fixture.run(&app).await;
    assert_eq!(exit.code, 1, "nothing of ours is in the environment");
    let lines = ["hello world", "/new/place", "some-name", "some-name", "0"];
    let expected = stdout(&lines);
    assert_eq!(fixture.log(&app), expected);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_takes_too_much_memory_is_told_so() {
    let fixture = Fixture::new().await;
    let limits = Limits {
        memory: 32 << 20,
        cpu_shares: 102,
        cpu_quota: 50_000,
        cpu_period: 100_000,
        ..Limits::default()
    };
    let app = ContainerConfig {
        limits,
        ..script("head -c 300000000 /dev/zero | tail -c 200000000 | wc -c; exit 9")
    };
    let exit = fixture.run(&app).await;
    assert_eq!(exit.reason, "OOMKilled", "{exit:?} {}", fixture.log(&app));
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_containers_use_is_measured() {
    let fixture =
        Fixture::with(|pod| pod.cgroup = format!("/kennel-test/pod{}", pod.pod.uid)).await;
    let nap = nap();
    let app = script(&format!(
        "head -c 5000000 /dev/zero > /tmp/five; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; sleep {nap}"
    ));
    let id = fixture.start(&app).await;
    until("it has worked", async || fixture.log(&app).contains("done")).await;
    until("it sleeps", async || {
        processes(&format!("sleep {nap}")).len() == 2
    })
    .await;
    let usage = fixture.runtime.usage(true).await.unwrap();
    let own = usage
        .iter()
        .find(|usage| usage.container == app.name)
        .unwrap();
    assert_eq!(own.pod, fixture.pod.pod.uid);
    assert!(
        own.memory > 100_000 && own.cpu > 1_000_000 && own.disk >= Some(5_000_000),
        "{own:?}"
    );
    let group = format!("kennel/kennel-test/pod{}/{id}", fixture.pod.pod.uid);
    assert_eq!((&own.id, &own.cgroup), (&id, &group));
    let small = fixture.runtime.usage(false).await.unwrap();
    assert!(small.iter().all(|one| one.disk.is_none()), "{small:?}");
    let made = |group: &str| {
        let tops = std::fs::read_dir("/sys/fs/cgroup")
            .unwrap()
            .flatten()
            .map(|top| top.path());
        tops.chain(["/sys/fs/cgroup".into()])
            .any(|top| top.join(group).exists())
    };
    assert!(made(&group));
    fixture.end().await;
    assert!(!made("kennel/kennel-test"), "groups go with their pods");
    assert!(!made("kennel-test"), "nothing is made outside of our own");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_honoured_is_refused_with_the_way_out() {
    let fixture = Fixture::new().await;
    let mut pod = fixture.pod.clone();
    pod.host_network = false;
    let refused = |expected: &str| Error::Refused(expected.to_owned());
    assert_eq!(
        fixture.runtime.start_sandbox(&pod).await.unwrap_err(),
        refused(
            "the process runtime has no pod network: set hostNetwork: true, or install containerd"
        ),
    );
    let entrypoint = ContainerConfig {
        command: vec![],
        ..script("")
    };
    assert_eq!(
        fixture
            .runtime
            .create(&fixture.pod, &fixture.sandbox, &entrypoint)
            .await
            .unwrap_err(),
        refused(
            "the process runtime has no images, and so no entrypoint: set command:, or install containerd"
        ),
    );
    fixture.end().await;
}
