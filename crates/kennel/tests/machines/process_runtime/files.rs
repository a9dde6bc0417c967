//! What a container sees of the machine's files, and what the machine sees of its.

use std::path::Path;

use kennel_node::runtime::{ContainerConfig, Mount, Propagation, Security};

use crate::process_runtime::fixture::{Fixture, script, stdout, unique, volume};

#[tokio::test(flavor = "multi_thread")]
async fn what_it_writes_outside_its_volumes_is_its_own() {
    let fixture = Fixture::new().await;
    let name = unique("kennel-test");
    let app = script(&format!(
        "echo mine > /etc/{name} && cat /etc/{name} && rm /bin/sh && echo removed"
    ));
    assert_eq!(
        fixture.output(&app).await,
        "stdout F mine\nstdout F removed\n"
    );
    assert!(!Path::new("/etc").join(name).exists());
    assert!(Path::new("/bin/sh").exists());
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_where_they_are_asked_for() {
    let fixture = Fixture::new().await;
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("file"), "from the machine\n").unwrap();
    let missing = unique("/run/kennel-test");
    let app = ContainerConfig {
        mounts: vec![
            volume(host.path(), "/no/such/place", false),
            volume(host.path(), "/fixed", true),
            volume(&host.path().join("file"), "/dev/termination-log", false),
            volume(host.path(), &missing, true),
        ],
        ..script(&format!(
            "cat /no/such/place/file; echo new > /no/such/place/new; cat /fixed/new
             echo x 2>/dev/null > /fixed/no || echo read-only
             echo last words > /dev/termination-log; cat /fixed/file {missing}/new
             echo null > /dev/null; test -c /dev/null && test -d /dev/pts && echo devices"
        ))
    };
    let expected = [
        "from the machine",
        "new",
        "read-only",
        "last words",
        "new",
        "devices",
    ];
    let expected = stdout(&expected);
    assert_eq!(fixture.output(&app).await, expected);
    let written = std::fs::read_to_string(host.path().join("file")).unwrap();
    assert_eq!(written, "last words\n", "a file is a volume, too");
    for place in ["/no", "/fixed", "/dev/termination-log", &missing] {
        assert!(
            !Path::new(place).exists(),
            "{place} was made on the machine"
        );
    }
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_root_is_read_only_but_for_volumes() {
    let fixture = Fixture::new().await;
    let host = tempfile::tempdir().unwrap();
    let app = ContainerConfig {
        mounts: vec![volume(host.path(), "/data", false)],
        security: Security {
            read_only_root: true,
            ..Security::default()
        },
        ..script(
            "for at in / /etc /tmp /data; do touch $at/x 2>/dev/null && echo $at; done; echo done > /dev/stdout",
        )
    };
    assert_eq!(
        fixture.output(&app).await,
        "stdout F /data\nstdout F done\n"
    );
    assert!(host.path().join("x").exists());
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mounts_reach_as_far_as_they_are_meant_to() {
    let fixture = Fixture::new().await;
    let host = tempfile::tempdir().unwrap();
    // A mount that is shared, as everything is on a machine with systemd.
    rustix::mount::mount(
        "tmpfs",
        host.path(),
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        None,
    )
    .unwrap();
    rustix::mount::mount_change(host.path(), rustix::mount::MountPropagationFlags::SHARED).unwrap();
    for (propagation, seen) in [
        (Propagation::Private, false),
        (Propagation::HostToContainer, false),
        (Propagation::Bidirectional, true),
    ] {
        std::fs::create_dir_all(host.path().join("below")).unwrap();
        let app = ContainerConfig {
            mounts: vec![Mount {
                propagation,
                ..volume(host.path(), "/shared", false)
            }],
            security: Security {
                privileged: true,
                ..Security::default()
            },
            ..script(
                "mount -t tmpfs below /shared/below && touch /shared/below/mark && ls /shared/below",
            )
        };
        assert_eq!(fixture.output(&app).await, "stdout F mark\n");
        assert_eq!(
            host.path().join("below/mark").exists(),
            seen,
            "{propagation:?}"
        );
    }
    let detach = rustix::mount::UnmountFlags::DETACH;
    rustix::mount::unmount(host.path().join("below"), detach).unwrap();
    rustix::mount::unmount(host.path(), detach).unwrap();
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_own_things_are_out_of_sight() {
    let fixture = Fixture::new().await;
    let data = fixture.data.path().to_str().unwrap();
    let secret = fixture.data.path().join("secret");
    std::fs::write(&secret, "secret\n").unwrap();
    let hidden = script(&format!("ls {data} | wc -l"));
    assert_eq!(fixture.output(&hidden).await, "stdout F 0\n");
    let given = ContainerConfig {
        mounts: vec![volume(&secret, "/given", true)],
        ..script("cat /given")
    };
    assert_eq!(
        fixture.output(&given).await,
        "stdout F secret\n",
        "but for its volumes"
    );
    fixture.end().await;
}
