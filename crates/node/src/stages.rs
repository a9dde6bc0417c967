//! A pod's life as data: which stage it is in, and what comes next and when.
//!
//! Pure: no clock, no I/O, no chance. How long things take and what goes wrong comes from a [`Life`];
//! what a stage looks like in the API is for others to say.

use std::time::Duration;

/// What is going to happen to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Until its images are there.
    pub pull: Duration,
    /// From there until its containers run.
    pub start: Duration,
    /// From there until they are ready.
    pub ready: Duration,
    /// From being told to stop to being gone; the pod's own grace period may be shorter.
    pub stop: Duration,
    /// Its images cannot be pulled.
    pub unpullable: bool,
    /// Its containers exit by themselves.
    pub exit: Option<Exit>,
}

/// An exit of containers by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// How long after their start.
    pub after: Duration,
    /// With which code.
    pub code: i32,
}

impl Life {
    /// Everything goes well, and at once.
    pub const AT_ONCE: Self = Self {
        pull: Duration::ZERO,
        start: Duration::ZERO,
        ready: Duration::ZERO,
        stop: Duration::ZERO,
        unpullable: false,
        exit: None,
    };
}

/// Where a pod is in its life. All its containers share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Bound to the node, which has done nothing about it.
    Bound,
    /// Images are pulled and containers made.
    Creating,
    /// An image could not be pulled, so often already.
    PullFailed(u32),
    /// Waiting to pull again.
    PullBackOff(u32),
    /// Running, not ready yet.
    Started,
    /// Running and ready.
    Ready,
    /// Exited with this code, and waiting to be started again.
    CrashLoop(i32),
    /// Ended for good with this code.
    Finished(i32),
    /// Told to stop, with so much time left for it.
    Stopping(Duration),
    /// Has stopped.
    Stopped,
}

/// When containers that have exited are started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Restart {
    /// Whenever they have.
    #[default]
    Always,
    /// If they have failed.
    OnFailure,
    /// Never.
    Never,
}

impl Restart {
    /// As a pod's `restartPolicy` says.
    pub fn of(policy: &str) -> Self {
        match policy {
            "Never" => Self::Never,
            "OnFailure" => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// The first and the longest wait before something that has failed is tried again: the kubelet's own.
const BACK_OFF: Duration = Duration::from_secs(10);
const BACK_OFF_MAX: Duration = Duration::from_mins(5);
/// Who has run for so long has recovered: the kubelet's own.
const RECOVERED: Duration = Duration::from_mins(10);
/// How long a failed pull is shown as such.
const FAILURE_SHOWN: Duration = Duration::from_secs(1);

/// The next stage and how long until then.
pub fn next(
    stage: Stage,
    life: Life,
    restart: Restart,
    restarts: u32,
) -> Option<(Duration, Stage)> {
    let now = Duration::ZERO;
    match stage {
        Stage::Bound => Some((now, Stage::Creating)),
        Stage::Creating if life.unpullable && restarts == 0 => {
            Some((life.pull, Stage::PullFailed(1)))
        }
        // What was started before is on the node.
        Stage::Creating if restarts > 0 => Some((life.start, Stage::Started)),
        Stage::Creating => Some((life.pull + life.start, Stage::Started)),
        Stage::PullFailed(times) => Some((FAILURE_SHOWN, Stage::PullBackOff(times))),
        Stage::PullBackOff(times) => {
            Some((back_off(times), Stage::PullFailed(times.saturating_add(1))))
        }
        Stage::Started => match life.exit {
            Some(exit) if exit.after <= life.ready => Some((exit.after, exited(exit, restart))),
            _ => Some((life.ready, Stage::Ready)),
        },
        Stage::Ready => {
            let exit = life.exit?;
            Some((exit.after.saturating_sub(life.ready), exited(exit, restart)))
        }
        Stage::CrashLoop(_) => Some((rest(life, restarts) + life.start, Stage::Started)),
        Stage::Stopping(grace) => Some((life.stop.min(grace), Stage::Stopped)),
        Stage::Finished(_) | Stage::Stopped => None,
    }
}

/// What a reboot of the node does to a pod. The containers that ran have to be started once more.
pub fn rebooted(stage: Stage, restart: Restart) -> Stage {
    const LOST: i32 = 255;
    match (stage, restart) {
        (Stage::Started | Stage::Ready | Stage::CrashLoop(_), Restart::Never) => {
            Stage::Finished(LOST)
        }
        (Stage::Started | Stage::Ready | Stage::CrashLoop(_), _) => Stage::Creating,
        (Stage::PullFailed(_) | Stage::PullBackOff(_), _) => Stage::Creating,
        // What was to be stopped does not run any more.
        (Stage::Stopping(_), _) => Stage::Stopped,
        (other, _) => other,
    }
}

/// Whether the containers run or have run in this stage.
pub fn has_run(stage: Stage) -> bool {
    matches!(stage, Stage::Started | Stage::Ready | Stage::CrashLoop(_))
}

fn exited(exit: Exit, restart: Restart) -> Stage {
    let again = match restart {
        Restart::Always => true,
        Restart::OnFailure => exit.code != 0,
        Restart::Never => false,
    };
    if again {
        Stage::CrashLoop(exit.code)
    } else {
        Stage::Finished(exit.code)
    }
}

/// How long containers that have exited wait: not at all the first time.
pub fn rest(life: Life, restarts: u32) -> Duration {
    let recovered = life.exit.is_some_and(|exit| exit.after >= RECOVERED);
    if restarts == 0 || recovered {
        return Duration::ZERO;
    }
    back_off(restarts)
}

fn back_off(times: u32) -> Duration {
    let factor = 2_u32.saturating_pow(times.saturating_sub(1));
    BACK_OFF.saturating_mul(factor).min(BACK_OFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The stages of a pod with the seconds at which they begin, until nothing more happens or so many
    /// have been.
    fn story(life: Life, restart: Restart, most: usize) -> Vec<(u64, Stage)> {
        let (mut now, mut stage, mut restarts) = (Duration::ZERO, Stage::Bound, 0);
        let mut all = Vec::new();
        while let Some((wait, to)) = next(stage, life, restart, restarts) {
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

    fn exiting(after: Duration, code: i32) -> Life {
        Life {
            ready: 2 * SECOND,
            exit: Some(Exit { after, code }),
            ..Life::AT_ONCE
        }
    }

    #[test]
    fn a_pod_becomes_ready_after_its_delays_and_stays() {
        let life = Life {
            pull: 2 * SECOND,
            start: SECOND,
            ready: 4 * SECOND,
            ..Life::AT_ONCE
        };
        let expected = [(0, Stage::Creating), (3, Stage::Started), (7, Stage::Ready)];
        assert_eq!(story(life, Restart::Always, 9), expected);
    }

    #[test]
    fn what_crashes_is_started_at_once_and_then_ever_later() {
        let crash = Stage::CrashLoop(3);
        let seen = story(exiting(5 * SECOND, 3), Restart::Always, 99);
        let begins = |wanted: Stage| -> Vec<u64> {
            let of = seen.iter().filter(|(_, stage)| *stage == wanted);
            of.map(|(at, _)| *at).take(5).collect()
        };
        assert_eq!(begins(crash), [5, 10, 25, 50, 95]);
        assert_eq!(begins(Stage::Started), [0, 5, 20, 45, 90]);
        assert_eq!(begins(Stage::Ready), [2, 7, 22, 47, 92]);
        assert_eq!(back_off(99), BACK_OFF_MAX);
        let slow = story(exiting(RECOVERED, 3), Restart::Always, 99);
        assert!(slow.iter().all(|(at, _)| at % 600 <= 2), "{slow:?}");
    }

    #[test]
    fn who_exits_before_being_ready_never_is() {
        let seen = story(exiting(SECOND, 1), Restart::Always, 50);
        assert!(seen.iter().all(|(_, stage)| *stage != Stage::Ready));
    }

    #[test]
    fn the_restart_policy_decides_about_the_end() {
        let check = |restart, code, expected| {
            let seen = story(exiting(5 * SECOND, code), restart, 4);
            assert_eq!(seen[3], (5, expected), "{restart:?} {code}");
        };
        check(Restart::Always, 0, Stage::CrashLoop(0));
        check(Restart::OnFailure, 0, Stage::Finished(0));
        check(Restart::OnFailure, 1, Stage::CrashLoop(1));
        check(Restart::Never, 1, Stage::Finished(1));
    }

    #[test]
    fn pulls_that_fail_are_tried_ever_later() {
        let life = Life {
            pull: SECOND,
            unpullable: true,
            ..Life::AT_ONCE
        };
        let expected = [
            (0, Stage::Creating),
            (1, Stage::PullFailed(1)),
            (2, Stage::PullBackOff(1)),
            (12, Stage::PullFailed(2)),
            (13, Stage::PullBackOff(2)),
            (33, Stage::PullFailed(3)),
        ];
        assert_eq!(story(life, Restart::Always, 6), expected);
    }

    #[test]
    fn a_pod_stops_in_its_own_time_but_no_later_than_granted() {
        let check = |grace: u32, expected: u32| {
            let life = Life {
                stop: 5 * SECOND,
                ..Life::AT_ONCE
            };
            let seen = next(Stage::Stopping(grace * SECOND), life, Restart::Always, 0);
            assert_eq!(seen, Some((expected * SECOND, Stage::Stopped)));
        };
        check(30, 5);
        check(1, 1);
    }

    #[test]
    fn after_a_reboot_pods_begin_again_as_their_policy_says() {
        let check = |stage, restart, expected| assert_eq!(rebooted(stage, restart), expected);
        check(Stage::Ready, Restart::Always, Stage::Creating);
        check(Stage::CrashLoop(1), Restart::OnFailure, Stage::Creating);
        check(Stage::Ready, Restart::Never, Stage::Finished(255));
        check(Stage::Finished(0), Restart::Always, Stage::Finished(0));
        check(Stage::Bound, Restart::Always, Stage::Bound);
        check(Stage::Stopping(SECOND), Restart::Always, Stage::Stopped);
    }
}
