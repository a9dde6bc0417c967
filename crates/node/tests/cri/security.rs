//! Security context and resources, as a container observes them.

use kennel_node::runtime::{
    Capabilities, ContainerConfig, Device, Limits, Mount, Propagation, Seccomp, Security,
};
use kennel_testkit::machine::possible;

use crate::fixture::{Fixture, Started};

/// Changes the configuration of a container.
type Change = fn(&mut ContainerConfig);

/// Name, script and configuration of a container, and its expected output.
const CASES: [(&str, &str, Change, &str); 9] = [
    (
        "user",
        "id",
        |config| {
            config.security.user = Some(1000);
            config.security.group = Some(2000);
            config.security.groups = vec![3000];
        },
        "uid=1000 gid=2000 groups=2000,3000",
    ),
    (
        "username",
        "id -un",
        |config| config.security.username = "nobody".into(),
        "nobody",
    ),
    (
        "group",
        "id",
        |config| config.security.group = Some(7),
        "uid=0(root) gid=7 groups=7",
    ),
    (
        "drop",
        "grep CapEff /proc/self/status | cut -f2",
        |config| {
            config.security.capabilities = Capabilities {
                add: vec!["NET_ADMIN".into()],
                drop: vec!["ALL".into()],
            };
        },
        "0000000000001000",
    ),
    (
        "rights",
        "grep NoNewPrivs /proc/self/status | cut -f2",
        |config| config.security.no_new_privileges = true,
        "1",
    ),
    (
        "seccomp",
        "grep -w Seccomp: /proc/self/status | cut -f2",
        |config| config.security.seccomp = Seccomp::RuntimeDefault,
        "2",
    ),
    (
        "root",
        "touch /file 2>/dev/null || echo refused",
        |config| config.security.read_only_root = true,
        "refused",
    ),
    (
        "place",
        "pwd; echo $GREETING",
        |config| {
            config.working_dir = "/tmp".into();
            config.env = vec![("GREETING".to_owned(), "hello $fixture".to_owned())];
        },
        "/tmp\nhello $fixture",
    ),
    (
        "memory",
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null",
        |config| {
            config.limits = Limits {
                memory: 32 << 20,
                cpu_shares: 512,
                cpu_period: 100_000,
                cpu_quota: 50_000,
                ..Limits::default()
            };
        },
        "33554432",
    ),
];

#[tokio::test]
async fn a_container_has_the_configured_properties() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("plain")).await;
    for (name, script, change, expected) in CASES {
        let mut config = fixture.script(name, script).await;
        change(&mut config);
        assert_eq!(fixture.output(&pod, &config).await, expected, "{name}");
    }
    check_mounts_and_devices(&fixture, &pod).await;
}

async fn check_mounts_and_devices(fixture: &Fixture, pod: &Started) {
    let shown = fixture.containerd.directory().join("shown");
    std::fs::create_dir(&shown).unwrap();
    // Mounts below propagate only from shared mounts of the host.
    for arguments in [["-t", "tmpfs", "none"].as_slice(), &["--make-shared"]] {
        let mount = std::process::Command::new("mount")
            .args(arguments)
            .arg(&shown)
            .status();
        assert!(mount.unwrap().success());
    }
    std::fs::write(shown.join("file"), "content").unwrap();
    let script =
        "cat /shown/file; touch /shown/x 2>/dev/null || echo refused; ls -l /dev/zilch | cut -c1";
    let mut config = fixture.script("mounts", script).await;
    config.mounts = vec![Mount {
        container_path: "/shown".into(),
        host_path: shown,
        read_only: true,
        propagation: Propagation::HostToContainer,
    }];
    config.devices = vec![Device {
        container_path: "/dev/zilch".into(),
        host_path: "/dev/null".into(),
        permissions: "rwm".to_owned(),
    }];
    assert_eq!(fixture.output(pod, &config).await, "contentrefused\nc");
}

#[tokio::test]
async fn pods_share_processes_if_configured_and_privileged_ones_are_unrestricted() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let count = "ls -d /proc/[0-9]* | wc -l";
    let alone = fixture.start(fixture.pod("alone")).await;
    let text = fixture
        .output(&alone, &fixture.script("count", count).await)
        .await;
    assert!(
        text.trim().parse::<u32>().unwrap() <= 3,
        "only its own: {text}"
    );

    let mut config = fixture.pod("shared");
    config.share_processes = true;
    let shared = fixture.start(config).await;
    fixture
        .run(&shared, &fixture.script("other", "exec sleep 4321").await)
        .await;
    let text = fixture
        .output(&shared, &fixture.script("list", "ps").await)
        .await;
    assert!(text.contains("sleep 4321"), "{text}");

    let mut config = fixture.pod("host");
    config.host_pid = true;
    config.host_ipc = true;
    config.privileged = true;
    let host = fixture.start(config).await;
    let mut config = fixture.script("all", "cat /proc/$PPID/comm >/dev/null; ps | grep -c containerd; mkdir /m; mount -t tmpfs none /m && echo mounted; ls /dev/kmsg").await;
    config.security = Security {
        privileged: true,
        ..Security::default()
    };
    let text = fixture.output(&host, &config).await;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].parse::<u32>().unwrap() > 0, "{text}");
    assert_eq!(lines[1..], ["mounted", "/dev/kmsg"], "{text}");
}
