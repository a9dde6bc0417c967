//! A real etcd that other programs write to: keys of another API server, and revisions that this server learns of a moment later.

use kennel_test_support::Etcd;
use kennel_testkit::Kennel;

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, KENNEL};

/// More than a start sets aside.
const UPSTREAMS: usize = 120;

#[test]
fn what_another_api_server_creates_for_itself_is_left_alone() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let keys: Vec<String> = (0..UPSTREAMS)
        .map(|n| format!("/registry/ipaddresses/10.0.0.{n}"))
        .chain([
            "/registry/servicecidrs/kubernetes".to_owned(),
            "/registry/ranges/servicenodeports".to_owned(),
        ])
        .collect();
    let of_another_version = ["/registry/widgets/ns/a", "/registry/widgets/ns/b"];
    let all = keys.iter().map(String::as_str).chain(of_another_version);
    let changes: Vec<_> = all.map(|key| (key, Some("k8s"))).collect();
    let kennel = Kennel::start(KENNEL, &["server", "--store", &etcd.store()]);
    let server = Fixture::of(kennel.restart_after(|_| etcd.change(&changes)));
    server.is_well("keys of another API server");
    let log = server.kennel.log();
    let lines = log.lines().filter(|line| line.contains("/registry/"));
    assert_eq!(lines.count(), 0, "{log}");
    assert_eq!(log.matches("widgets (2)").count(), 1, "{log}");
    let prefix = ["get", "/registry/ipaddresses/", "--prefix", "--keys-only"];
    assert_eq!(etcd.ctl(&prefix).split_whitespace().count(), UPSTREAMS);
}

/// The newest revision of etcd.
fn newest(etcd: &Etcd) -> u64 {
    let status = etcd.ctl(&["put", "/elsewhere", "x", "--write-out", "json"]);
    let revision = status.split("\"revision\":").nth(1).expect("a revision");
    let digits: String = revision.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn a_revision_that_the_server_learns_of_a_moment_later_is_no_error() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let server = Fixture::of(Kennel::start(KENNEL, &["server", "--store", &etcd.store()]));
    let watch = |version: u64| {
        let path = format!("{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}");
        server.admin.ask("GET", &path, b"")
    };
    for _ in 0..10 {
        let revision = newest(&etcd);
        let list = format!("{CONFIGMAPS}?resourceVersion={revision}");
        let list = server.admin.ask("GET", &list, b"");
        assert_eq!(list.code, 200, "{}", list.text());
        let exact = newest(&etcd);
        let exact = format!("{CONFIGMAPS}?resourceVersion={exact}&resourceVersionMatch=Exact");
        let exact = server.admin.ask("GET", &exact, b"");
        assert_eq!(exact.code, 200, "{}", exact.text());
    }
    let begun = watch(newest(&etcd));
    assert_eq!(begun.code, 200);
    assert!(!begun.text().contains("ERROR"), "{}", begun.text());
    // One that etcd itself has not reached.
    let future = newest(&etcd) + 1_000_000;
    let refused = watch(future);
    assert!(
        refused.code == 200 && refused.text().contains("\"code\":410"),
        "{}",
        refused.text()
    );
    let list = format!("{CONFIGMAPS}?resourceVersion={future}");
    assert_eq!(server.admin.ask("GET", &list, b"").code, 504);
}
