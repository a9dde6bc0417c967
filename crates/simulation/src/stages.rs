//! The stages of a simulated pod: which one it is in, and which one comes next and when.
//!
//! Pure: no clock, no I/O, no randomness. How long things take and what fails comes from a [`PodBehaviour`];
//! [`pod_status`](crate::pod_status) says what a stage looks like in the API.

use std::time::Duration;

use kennel_core::pod::backoff;
use kennel_types::RestartPolicy;

/// How long the steps of a pod take, and what fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodBehaviour {
    /// Time to pull its images.
    pub pull: Duration,
    /// From the pull until its containers run.
    pub start: Duration,
    /// From the start until they are ready.
    pub ready: Duration,
    /// From deletion until the containers have stopped; the pod's own grace period may be shorter.
    pub stop: Duration,
    /// Its images cannot be pulled.
    pub unpullable: bool,
    /// Its containers exit by themselves.
    pub exit: Option<Exit>,
}

/// Containers exit by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Counted from their start.
    pub after: Duration,
    pub code: i32,
}

impl PodBehaviour {
    /// Every step succeeds and takes no time.
    pub const IMMEDIATE: Self = Self {
        pull: Duration::ZERO,
        start: Duration::ZERO,
        ready: Duration::ZERO,
        stop: Duration::ZERO,
        unpullable: false,
        exit: None,
    };
}

/// The stage of a pod. All its containers share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Bound to the node, which has not started it yet.
    Bound,
    /// Images are being pulled and containers created.
    Creating,
    /// Pulling an image has failed this many times.
    PullFailed(u32),
    /// Waits before the next pull, after this many failures.
    PullBackOff(u32),
    /// Running, not ready yet.
    Started,
    Ready,
    /// Exited with this code, waits to be restarted.
    CrashLoop(i32),
    /// Exited with this code for good.
    Finished(i32),
    /// Being terminated, with this grace period.
    Stopping(Duration),
    Stopped,
}

/// How long a failed pull is shown as `ErrImagePull` before it becomes `ImagePullBackOff`.
const ERR_IMAGE_PULL: Duration = Duration::from_secs(1);

/// The next stage and the time until it begins. `None` for a stage that nothing follows.
pub(crate) fn next(
    stage: Stage,
    behaviour: PodBehaviour,
    restart: RestartPolicy,
    restarts: u32,
) -> Option<(Duration, Stage)> {
    let now = Duration::ZERO;
    match stage {
        Stage::Bound => Some((now, Stage::Creating)),
        Stage::Creating if behaviour.unpullable && restarts == 0 => {
            Some((behaviour.pull, Stage::PullFailed(1)))
        }
        // Images of restarted containers are on the node.
        Stage::Creating if restarts > 0 => Some((behaviour.start, Stage::Started)),
        Stage::Creating => Some((behaviour.pull + behaviour.start, Stage::Started)),
        Stage::PullFailed(times) => Some((ERR_IMAGE_PULL, Stage::PullBackOff(times))),
        Stage::PullBackOff(times) => {
            Some((back_off(times), Stage::PullFailed(times.saturating_add(1))))
        }
        Stage::Started => match behaviour.exit {
            Some(exit) if exit.after <= behaviour.ready => {
                Some((exit.after, stage_after_exit(exit, restart)))
            }
            _ => Some((behaviour.ready, Stage::Ready)),
        },
        Stage::Ready => {
            let exit = behaviour.exit?;
            Some((
                exit.after.saturating_sub(behaviour.ready),
                stage_after_exit(exit, restart),
            ))
        }
        Stage::CrashLoop(_) => Some((
            restart_delay(behaviour, restarts) + behaviour.start,
            Stage::Started,
        )),
        Stage::Stopping(grace) => Some((behaviour.stop.min(grace), Stage::Stopped)),
        Stage::Finished(_) | Stage::Stopped => None,
    }
}

/// The stage of a pod after its node rebooted: containers that ran are created again.
pub(crate) fn after_reboot(stage: Stage, restart: RestartPolicy) -> Stage {
    const EXIT_CODE_UNKNOWN: i32 = 255;
    match (stage, restart) {
        (Stage::Started | Stage::Ready | Stage::CrashLoop(_), RestartPolicy::Never) => {
            Stage::Finished(EXIT_CODE_UNKNOWN)
        }
        (Stage::Started | Stage::Ready | Stage::CrashLoop(_), _) => Stage::Creating,
        (Stage::PullFailed(_) | Stage::PullBackOff(_), _) => Stage::Creating,
        // A reboot stops all containers.
        (Stage::Stopping(_), _) => Stage::Stopped,
        (other, _) => other,
    }
}

/// Whether the containers run or have run in this stage.
pub(crate) fn has_run(stage: Stage) -> bool {
    matches!(stage, Stage::Started | Stage::Ready | Stage::CrashLoop(_))
}

fn stage_after_exit(exit: Exit, restart: RestartPolicy) -> Stage {
    let restarts = match restart {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => exit.code != 0,
        RestartPolicy::Never => false,
    };
    if restarts {
        Stage::CrashLoop(exit.code)
    } else {
        Stage::Finished(exit.code)
    }
}

/// The delay before containers that exited restart: none for the first restart.
pub(crate) fn restart_delay(behaviour: PodBehaviour, restarts: u32) -> Duration {
    let reset = behaviour
        .exit
        .is_some_and(|exit| exit.after >= backoff::RESET_AFTER);
    if restarts == 0 || reset {
        return Duration::ZERO;
    }
    back_off(restarts)
}

fn back_off(times: u32) -> Duration {
    // The kubelet's policy has no jitter.
    backoff::POLICY.exact_delay(times.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The first `most` stages of a pod, with the second in which each begins.
    fn history(behaviour: PodBehaviour, restart: RestartPolicy, most: usize) -> Vec<(u64, Stage)> {
        let (mut now, mut stage, mut restarts) = (Duration::ZERO, Stage::Bound, 0);
        let mut all = Vec::new();
        while let Some((wait, to)) = next(stage, behaviour, restart, restarts) {
            now += wait;
            restarts += u32::from(matches!(stage, Stage::CrashLoop(_)));
            stage = to;
            all.push((now.as_secs(), stage));
            if all.len() == most {
                break;
            }
        }
        all
    }

    fn exiting(after: Duration, code: i32) -> PodBehaviour {
        PodBehaviour {
            ready: 2 * SECOND,
            exit: Some(Exit { after, code }),
            ..PodBehaviour::IMMEDIATE
        }
    }

    #[test]
    fn a_pod_becomes_ready_after_its_delays_and_stays() {
        let behaviour = PodBehaviour {
            pull: 2 * SECOND,
            start: SECOND,
            ready: 4 * SECOND,
            ..PodBehaviour::IMMEDIATE
        };
        let expected = [(0, Stage::Creating), (3, Stage::Started), (7, Stage::Ready)];
        assert_eq!(history(behaviour, RestartPolicy::Always, 9), expected);
    }

    #[test]
    fn crashed_containers_restart_at_once_and_then_with_growing_delays() {
        let crash = Stage::CrashLoop(3);
        let stages = history(exiting(5 * SECOND, 3), RestartPolicy::Always, 99);
        let begins = |wanted: Stage| -> Vec<u64> {
            let of = stages.iter().filter(|(_, stage)| *stage == wanted);
            of.map(|(at, _)| *at).take(5).collect()
        };
        assert_eq!(begins(crash), [5, 10, 25, 50, 95]);
        assert_eq!(begins(Stage::Started), [0, 5, 20, 45, 90]);
        assert_eq!(begins(Stage::Ready), [2, 7, 22, 47, 92]);
        assert_eq!(back_off(99), Duration::from_mins(5));
        let slow = history(exiting(backoff::RESET_AFTER, 3), RestartPolicy::Always, 99);
        assert!(slow.iter().all(|(at, _)| at % 600 <= 2), "{slow:?}");
    }

    #[test]
    fn containers_that_exit_before_they_are_ready_never_become_ready() {
        let stages = history(exiting(SECOND, 1), RestartPolicy::Always, 50);
        assert!(stages.iter().all(|(_, stage)| *stage != Stage::Ready));
    }

    #[test]
    fn the_restart_policy_decides_about_the_end() {
        let check = |restart, code, expected| {
            let stages = history(exiting(5 * SECOND, code), restart, 4);
            assert_eq!(stages[3], (5, expected), "{restart:?} {code}");
        };
        check(RestartPolicy::Always, 0, Stage::CrashLoop(0));
        check(RestartPolicy::OnFailure, 0, Stage::Finished(0));
        check(RestartPolicy::OnFailure, 1, Stage::CrashLoop(1));
        check(RestartPolicy::Never, 1, Stage::Finished(1));
    }

    #[test]
    fn failed_pulls_are_retried_with_growing_delays() {
        let behaviour = PodBehaviour {
            pull: SECOND,
            unpullable: true,
            ..PodBehaviour::IMMEDIATE
        };
        let expected = [
            (0, Stage::Creating),
            (1, Stage::PullFailed(1)),
            (2, Stage::PullBackOff(1)),
            (12, Stage::PullFailed(2)),
            (13, Stage::PullBackOff(2)),
            (33, Stage::PullFailed(3)),
        ];
        assert_eq!(history(behaviour, RestartPolicy::Always, 6), expected);
    }

    #[test]
    fn a_pod_stops_within_its_grace_period() {
        let check = |grace: u32, expected: u32| {
            let behaviour = PodBehaviour {
                stop: 5 * SECOND,
                ..PodBehaviour::IMMEDIATE
            };
            let next = next(
                Stage::Stopping(grace * SECOND),
                behaviour,
                RestartPolicy::Always,
                0,
            );
            assert_eq!(next, Some((expected * SECOND, Stage::Stopped)));
        };
        check(30, 5);
        check(1, 1);
    }

    #[test]
    fn after_a_reboot_pods_begin_again_as_their_policy_says() {
        let check = |stage, restart, expected| assert_eq!(after_reboot(stage, restart), expected);
        check(Stage::Ready, RestartPolicy::Always, Stage::Creating);
        check(
            Stage::CrashLoop(1),
            RestartPolicy::OnFailure,
            Stage::Creating,
        );
        check(Stage::Ready, RestartPolicy::Never, Stage::Finished(255));
        check(
            Stage::Finished(0),
            RestartPolicy::Always,
            Stage::Finished(0),
        );
        check(Stage::Bound, RestartPolicy::Always, Stage::Bound);
        check(
            Stage::Stopping(SECOND),
            RestartPolicy::Always,
            Stage::Stopped,
        );
    }
}
