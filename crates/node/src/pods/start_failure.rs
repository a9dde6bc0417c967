//! Makes start failures of input errors, with the reasons that upstream's kubelet reports.

use std::fmt::Display;

use kennel_core::pod::tracker::StartFailure;
use kennel_types::pod::WaitingReason;

/// The container's configuration is invalid or incomplete.
pub(crate) fn container_config(error: impl Display) -> StartFailure {
    StartFailure {
        reason: WaitingReason::CreateContainerConfigError,
        backoff_reason: WaitingReason::CreateContainerConfigError,
        message: error.to_string(),
    }
}

pub(crate) fn mount(volume: &str, error: impl Display) -> StartFailure {
    StartFailure {
        reason: WaitingReason::Other("FailedMount"),
        backoff_reason: WaitingReason::ContainerCreating,
        message: format!("MountVolume.SetUp failed for volume \"{volume}\" : {error}"),
    }
}

pub(crate) fn sandbox(error: impl Display) -> StartFailure {
    StartFailure {
        reason: WaitingReason::Other("FailedCreatePodSandBox"),
        backoff_reason: WaitingReason::ContainerCreating,
        message: format!("Failed to create pod sandbox: {error}"),
    }
}

pub(crate) fn pod_directories(error: impl Display) -> StartFailure {
    StartFailure {
        reason: WaitingReason::Other("FailedToMakePodDataDirectories"),
        backoff_reason: WaitingReason::ContainerCreating,
        message: format!("error making pod data directories: {error}"),
    }
}
