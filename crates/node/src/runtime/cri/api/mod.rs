//! The messages of the container runtime interface (CRI v1) that are used here, transcribed from
//! `k8s.io/cri-api/pkg/apis/runtime/v1/api.proto` without unused fields. A test compares the field numbers with a
//! table of the published ones.

/// Declares messages like a proto file: the number, name and type of each field, and how prost encodes it.
macro_rules! messages {
    ($($(#[$attribute:meta])* $name:ident {
        $($tag:tt => $field:ident: $type:ty as $($kind:ident $(= $value:tt)?)+,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub(crate) struct $name {$(
            #[prost($($kind $(= $value)?,)+ tag = $tag)]
            pub(crate) $field: $type,
        )*}
    )*};
}

mod container;
mod containerd;
mod image;
mod sandbox;
mod status;
mod stream;

pub(crate) use self::container::*;
pub(crate) use self::containerd::*;
pub(crate) use self::image::*;
pub(crate) use self::sandbox::*;
pub(crate) use self::status::*;
pub(crate) use self::stream::*;

/// A unary call, named by its request.
pub(crate) trait Call: prost::Message + Clone + 'static {
    type Response: prost::Message + Default + 'static;
    /// `/service/method`.
    const PATH: &'static str;
}

messages! {
    /// A response whose fields are not read.
    Empty {}

    /// An optional number.
    #[derive(Copy)]
    Int64Value {
        1 => value: i64 as int64,
    }

    /// An optional measurement.
    #[derive(Copy)]
    UInt64Value {
        1 => value: u64 as uint64,
    }
}

macro_rules! calls {
    ($service:literal: $($method:ident($request:ty) -> $response:ty;)*) => {$(
        impl Call for $request {
            type Response = $response;
            const PATH: &'static str = concat!("/runtime.v1.", $service, "/", stringify!($method));
        }
    )*};
}

calls! { "RuntimeService":
    Version(VersionRequest) -> VersionResponse;
    Status(StatusRequest) -> StatusResponse;
    RunPodSandbox(RunPodSandboxRequest) -> RunPodSandboxResponse;
    StopPodSandbox(StopPodSandboxRequest) -> Empty;
    RemovePodSandbox(RemovePodSandboxRequest) -> Empty;
    PodSandboxStatus(PodSandboxStatusRequest) -> PodSandboxStatusResponse;
    ListPodSandbox(ListPodSandboxRequest) -> ListPodSandboxResponse;
    CreateContainer(CreateContainerRequest) -> CreateContainerResponse;
    StartContainer(StartContainerRequest) -> Empty;
    StopContainer(StopContainerRequest) -> Empty;
    RemoveContainer(RemoveContainerRequest) -> Empty;
    ListContainers(ListContainersRequest) -> ListContainersResponse;
    ContainerStatus(ContainerStatusRequest) -> ContainerStatusResponse;
    ReopenContainerLog(ReopenContainerLogRequest) -> Empty;
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
    RemoveImage(RemoveImageRequest) -> Empty;
    ImageFsInfo(ImageFsInfoRequest) -> ImageFsInfoResponse;
}

#[cfg(test)]
mod tests;
