//! Conditions and the generation that they are about (R9.1).

use super::cluster::Cluster;

/// A DaemonSet with this policy whose rollout of template 1 has come to rest.
fn stalled(policy: &[(&str, &str)], reason: &str) -> Cluster {
    let mut cluster = Cluster::new(4, policy);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(60);
    let stalled = ("Stalled".to_owned(), reason.to_owned());
    assert_eq!(cluster.conditions(), [stalled]);
    cluster
}

/// Applies a new template and a readable policy in one. `restarts`: another controller starts meanwhile.
fn check_next(mut cluster: Cluster, reason: &str, restarts: bool) {
    let before = cluster.fake.sets[&cluster.uid].generation;
    cluster.forget();
    let uid = cluster.uid.clone();
    cluster.fake.edit_set(&uid, |set| {
        let all = std::sync::Arc::make_mut(&mut set.annotations);
        let stages = format!("{}stages", crate::rollout::PREFIX);
        all.insert(stages, "100%".to_owned());
        set.template = super::super::super::super::reference_model::fake_cluster::template(2);
    });
    if restarts {
        cluster.restart();
    }
    cluster.run();
    let after: Vec<_> = cluster
        .statuses
        .iter()
        .filter(|(generation, _)| *generation > before)
        .collect();
    assert_eq!(after, [&(before + 1, None)], "{reason}");
    let reported = &cluster.fake.sets[&cluster.uid];
    assert_eq!(reported.status.observed_generation, before + 1, "{reason}");
    assert!(cluster.conditions().is_empty(), "{reason}");
    assert_eq!(cluster.counts(), [(2, 4)].into(), "{reason}");
}

/// Helm 4 and Flux take a `Stalled` for final whose generation is the one that they have applied. Generation and conditions
/// are written in one request.
#[test]
fn r9_1_a_new_generation_never_goes_out_with_the_old_stalled() {
    let deadlines = [("healthy-deadline", "1m"), ("stages", "1, 100%")];
    let [healthy, stages] = deadlines;
    for restarts in [false, true] {
        let back = ("on-failure", "rollback");
        let held = stalled(&[healthy, stages, back], "RolledBack");
        check_next(held, "RolledBack", restarts);
        let paused = stalled(&[healthy, stages], "PausedOnFailure");
        check_next(paused, "PausedOnFailure", restarts);
        let progress = [stages, ("progress-deadline", "1m")];
        let late = stalled(&progress, "DeadlineExceeded");
        check_next(late, "DeadlineExceeded", restarts);
        let mut invalid = stalled(&[healthy, stages], "PausedOnFailure");
        invalid.annotate(&[("stages", "?")]);
        invalid.run();
        let conditions = [("Stalled".to_owned(), "PolicyInvalid".to_owned())];
        assert_eq!(invalid.conditions(), conditions);
        check_next(invalid, "PolicyInvalid", restarts);
    }
}
