//! What makes another controller suspicious, and what does not.

use std::time::Duration;

use kennel_core::daemonset::view::{Health, Phase};
use kennel_types::Timestamp;

use super::*;

fn pod(name: &str) -> PodView {
    PodView {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        controller: Some("uid-set".into()),
        labels: Arc::default(),
        bound_to: Some("node".into()),
        pinned_to: None,
        created: Timestamp::EPOCH,
        terminating: false,
        phase: Phase::Active,
        ready_since: None,
        health: Health::default(),
    }
}

fn terminating(name: &str) -> PodView {
    PodView {
        terminating: true,
        ..pod(name)
    }
}

const NOW: Monotonic = Monotonic::START;
const LATER: Monotonic = Monotonic::since_start(Duration::from_mins(1));

fn watch() -> ConflictWatch {
    let mut watch = ConflictWatch::new("own".into());
    watch.start();
    watch
}

fn set() -> Identity {
    Identity::new("default", "set", "uid-set")
}

fn foreign_write(act: Act, pod: &str) -> ForeignWrite {
    ForeignWrite {
        act,
        pod: pod.to_owned(),
        instance: String::new(),
    }
}

/// Whether it looks for events, and finds a conflict if another controller's event names the pod.
fn conflicts(watch: &mut ConflictWatch, act: Act, pod: &str) -> bool {
    let due = watch.take_due(LATER).is_some();
    let found = watch.judge(LATER, &set(), Ok(vec![foreign_write(act, pod)]));
    assert_eq!(due, found.is_some());
    due
}

#[test]
fn pods_that_were_not_requested_are_suspicious_once_the_first_list_is_complete() {
    let mut early = ConflictWatch::new("own".into());
    early.pod(NOW, None, &pod("a"), false);
    early.start();
    assert!(!conflicts(&mut early, Act::Created, "a"));
    let mut requested = watch();
    requested.pod(NOW, None, &pod("a"), true);
    assert!(!conflicts(&mut requested, Act::Created, "a"));
    let mut known = watch();
    known.pod(NOW, Some(&pod("a")), &pod("a"), false);
    assert!(!conflicts(&mut known, Act::Created, "a"));
    let mut orphan = watch();
    let ownerless = PodView {
        controller: None,
        ..pod("a")
    };
    orphan.pod(NOW, None, &ownerless, false);
    orphan.pod(NOW, Some(&ownerless), &pod("a"), false);
    assert!(!conflicts(&mut orphan, Act::Created, "a"), "it was adopted");
    let mut strange = watch();
    strange.pod(NOW, None, &pod("a"), false);
    assert!(conflicts(&mut strange, Act::Created, "a"));
}

#[test]
fn deletions_that_were_not_requested_are_suspicious() {
    let mut ours = watch();
    ours.deleting(&"uid-a".into());
    ours.pod(NOW, Some(&pod("a")), &terminating("a"), false);
    ours.pod_gone(NOW, "uid-a", Some(&terminating("a")));
    assert!(ours.deleting.is_empty());
    assert!(!conflicts(&mut ours, Act::Deleted, "a"));
    let mut forced = watch();
    forced.deleting(&"uid-a".into());
    forced.pod_gone(NOW, "uid-a", Some(&pod("a")));
    assert!(!conflicts(&mut forced, Act::Deleted, "a"));
    let mut before = watch();
    before.pod_gone(NOW, "uid-a", Some(&terminating("a")));
    assert!(
        !conflicts(&mut before, Act::Deleted, "a"),
        "it was being deleted at the first sight"
    );
    for gone_at_once in [false, true] {
        let mut strange = watch();
        if gone_at_once {
            strange.pod_gone(NOW, "uid-a", Some(&pod("a")));
        } else {
            strange.pod(NOW, Some(&pod("a")), &terminating("a"), false);
        }
        assert!(conflicts(&mut strange, Act::Deleted, "a"));
    }
}

#[test]
fn a_suspicion_alone_is_no_conflict() {
    let mut drained = watch();
    drained.pod(NOW, Some(&pod("a")), &terminating("a"), false);
    assert!(drained.take_due(LATER).is_some());
    assert_eq!(drained.judge(LATER, &set(), Ok(Vec::new())), None);
    let forbidden = Failure {
        code: Some(403),
        ..Failure::default()
    };
    assert_eq!(drained.judge(LATER, &set(), Err(forbidden)), None);
}
