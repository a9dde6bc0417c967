//! The messages of the container runtime interface (CRI v1) that are used here, written by hand after
//! `k8s.io/cri-api/pkg/apis/runtime/v1/api.proto`: fields that nothing here reads or writes are left out.
//!
//! Nothing but data: what the messages mean is said where they are used.

mod container;
mod image;
mod sandbox;
mod status;
mod stream;
mod watch;

pub(crate) use self::container::*;
pub(crate) use self::image::*;
pub(crate) use self::sandbox::*;
pub(crate) use self::status::*;
pub(crate) use self::stream::*;
pub(crate) use self::watch::*;

/// A request with one answer, and where it goes.
pub(crate) trait Call: prost::Message + Clone + 'static {
    /// What is answered.
    type Answer: prost::Message + Default + 'static;
    /// Service and method.
    const PATH: &'static str;
}

/// An answer that says nothing but that it was done.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Done {}

/// A number that may be absent.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Int64Value {
    #[prost(int64, tag = "1")]
    pub(crate) value: i64,
}

/// A measured number that may be absent.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct UInt64Value {
    #[prost(uint64, tag = "1")]
    pub(crate) value: u64,
}

macro_rules! calls {
    ($service:literal: $($method:ident($request:ty) -> $answer:ty;)*) => {$(
        impl Call for $request {
            type Answer = $answer;
            const PATH: &'static str = concat!("/runtime.v1.", $service, "/", stringify!($method));
        }
    )*};
}

calls! { "RuntimeService":
    Version(VersionRequest) -> VersionResponse;
    Status(StatusRequest) -> StatusResponse;
    RunPodSandbox(RunPodSandboxRequest) -> RunPodSandboxResponse;
    StopPodSandbox(StopPodSandboxRequest) -> Done;
    RemovePodSandbox(RemovePodSandboxRequest) -> Done;
    PodSandboxStatus(PodSandboxStatusRequest) -> PodSandboxStatusResponse;
    ListPodSandbox(ListPodSandboxRequest) -> ListPodSandboxResponse;
    CreateContainer(CreateContainerRequest) -> CreateContainerResponse;
    StartContainer(StartContainerRequest) -> Done;
    StopContainer(StopContainerRequest) -> Done;
    RemoveContainer(RemoveContainerRequest) -> Done;
    ListContainers(ListContainersRequest) -> ListContainersResponse;
    ContainerStatus(ContainerStatusRequest) -> ContainerStatusResponse;
    ReopenContainerLog(ReopenContainerLogRequest) -> Done;
    ExecSync(ExecSyncRequest) -> ExecSyncResponse;
    Exec(ExecRequest) -> StreamResponse;
    Attach(AttachRequest) -> StreamResponse;
    PortForward(PortForwardRequest) -> StreamResponse;
    ListContainerStats(ListContainerStatsRequest) -> ListContainerStatsResponse;
}

calls! { "ImageService":
    ListImages(ListImagesRequest) -> ListImagesResponse;
    ImageStatus(ImageStatusRequest) -> ImageStatusResponse;
    PullImage(PullImageRequest) -> PullImageResponse;
    RemoveImage(RemoveImageRequest) -> Done;
    ImageFsInfo(ImageFsInfoRequest) -> ImageFsInfoResponse;
}
