//! Why a container waits.

use crate::text_enum::text_enum;

text_enum! {
    /// `state.waiting.reason`, spelled as kubelets do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WaitingReason<'a>, else Other(&'a str) {
        ContainerCreating = "ContainerCreating",
        PodInitializing = "PodInitializing",
        CrashLoopBackOff = "CrashLoopBackOff",
        // Images.
        ErrImageNeverPull = "ErrImageNeverPull",
        ErrImagePull = "ErrImagePull",
        ImageInspectError = "ImageInspectError",
        ImagePullBackOff = "ImagePullBackOff",
        InvalidImageName = "InvalidImageName",
        RegistryUnavailable = "RegistryUnavailable",
        SignatureValidationFailed = "SignatureValidationFailed",
        // Starts.
        CreateContainerConfigError = "CreateContainerConfigError",
        CreateContainerError = "CreateContainerError",
        PostStartHookError = "PostStartHookError",
        PreCreateHookError = "PreCreateHookError",
        PreStartHookError = "PreStartHookError",
        RunContainerError = "RunContainerError",
    }
}
