//! Messages of exec, attach and port-forward.

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecSyncRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) cmd: Vec<String>,
    #[prost(int64, tag = "3")]
    pub(crate) timeout: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecSyncResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) stdout: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) stderr: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub(crate) exit_code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) cmd: Vec<String>,
    #[prost(bool, tag = "3")]
    pub(crate) tty: bool,
    #[prost(bool, tag = "4")]
    pub(crate) stdin: bool,
    #[prost(bool, tag = "5")]
    pub(crate) stdout: bool,
    #[prost(bool, tag = "6")]
    pub(crate) stderr: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AttachRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(bool, tag = "2")]
    pub(crate) stdin: bool,
    #[prost(bool, tag = "3")]
    pub(crate) tty: bool,
    #[prost(bool, tag = "4")]
    pub(crate) stdout: bool,
    #[prost(bool, tag = "5")]
    pub(crate) stderr: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PortForwardRequest {
    #[prost(string, tag = "1")]
    pub(crate) pod_sandbox_id: String,
    #[prost(int32, repeated, tag = "2")]
    pub(crate) port: Vec<i32>,
}

/// The URL on the runtime's streaming server; the response of exec, attach and port-forward.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StreamResponse {
    #[prost(string, tag = "1")]
    pub(crate) url: String,
}
