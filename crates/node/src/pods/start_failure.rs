//! Makes start failures of input errors, with the reasons that upstream's kubelet reports.

use std::fmt::Display;

use kennel_core::pod::tracker::StartFailure;

/// The container's configuration is invalid or incomplete.
pub(crate) fn container_config(error: impl Display) -> StartFailure {
    StartFailure {
        reason: "CreateContainerConfigError",
        backoff_reason: "CreateContainerConfigError",
        message: error.to_string(),
    }
}

pub(crate) fn mount(volume: &str, error: impl Display) -> StartFailure {
    StartFailure {
        reason: "FailedMount",
        backoff_reason: "ContainerCreating",
        message: format!("MountVolume.SetUp failed for volume \"{volume}\" : {error}"),
    }
}

pub(crate) fn sandbox(error: impl Display) -> StartFailure {
    StartFailure {
        reason: "FailedCreatePodSandBox",
        backoff_reason: "ContainerCreating",
        message: format!("Failed to create pod sandbox: {error}"),
    }
}

pub(crate) fn pod_directories(error: impl Display) -> StartFailure {
    StartFailure {
        reason: "FailedToMakePodDataDirectories",
        backoff_reason: "ContainerCreating",
        message: format!("error making pod data directories: {error}"),
    }
}
