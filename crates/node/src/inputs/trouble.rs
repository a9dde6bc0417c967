//! Why a pod cannot be given what it asks for, in the words that users know.

use kennel_core::pod::memory::Trouble;

/// A container cannot be described as it asks to be.
pub(super) fn config(message: impl Into<String>) -> Trouble {
    Trouble {
        reason: "CreateContainerConfigError",
        waiting: "CreateContainerConfigError",
        message: message.into(),
    }
}

/// A volume cannot be set up.
pub(super) fn mount(volume: &str, why: &dyn std::fmt::Display) -> Trouble {
    Trouble {
        reason: "FailedMount",
        waiting: "ContainerCreating",
        message: format!("MountVolume.SetUp failed for volume \"{volume}\" : {why}"),
    }
}

/// A sandbox cannot be described.
pub(super) fn sandbox(why: impl std::fmt::Display) -> Trouble {
    Trouble {
        reason: "FailedCreatePodSandBox",
        waiting: "ContainerCreating",
        message: format!("Failed to create pod sandbox: {why}"),
    }
}

/// The pod's own directories cannot be made.
pub(super) fn directories(why: &dyn std::fmt::Display) -> Trouble {
    Trouble {
        reason: "FailedToMakePodDataDirectories",
        waiting: "ContainerCreating",
        message: format!("error making pod data directories: {why}"),
    }
}
