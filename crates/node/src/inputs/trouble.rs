//! Why a pod cannot be given what it asks for, in the words that users know.

use kennel_core::pod::tracker::StartFailure;

/// A container cannot be described as it asks to be.
pub(super) fn config(message: impl Into<String>) -> StartFailure {
    StartFailure {
        reason: "CreateContainerConfigError",
        backoff_reason: "CreateContainerConfigError",
        message: message.into(),
    }
}

/// A volume cannot be set up.
pub(super) fn mount(volume: &str, why: &dyn std::fmt::Display) -> StartFailure {
    StartFailure {
        reason: "FailedMount",
        backoff_reason: "ContainerCreating",
        message: format!("MountVolume.SetUp failed for volume \"{volume}\" : {why}"),
    }
}

/// A sandbox cannot be described.
pub(super) fn sandbox(why: impl std::fmt::Display) -> StartFailure {
    StartFailure {
        reason: "FailedCreatePodSandBox",
        backoff_reason: "ContainerCreating",
        message: format!("Failed to create pod sandbox: {why}"),
    }
}

/// The pod's own directories cannot be made.
pub(super) fn directories(why: &dyn std::fmt::Display) -> StartFailure {
    StartFailure {
        reason: "FailedToMakePodDataDirectories",
        backoff_reason: "ContainerCreating",
        message: format!("error making pod data directories: {why}"),
    }
}
