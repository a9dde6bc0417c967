//! Messages of exec, attach and port-forward.

messages! {
    ExecSyncRequest {
        1 => container_id: String as string,
        2 => cmd: Vec<String> as string repeated,
        3 => timeout: i64 as int64,
    }

    ExecSyncResponse {
        1 => stdout: Vec<u8> as bytes = "vec",
        2 => stderr: Vec<u8> as bytes = "vec",
        3 => exit_code: i32 as int32,
    }

    ExecRequest {
        1 => container_id: String as string,
        2 => cmd: Vec<String> as string repeated,
        3 => tty: bool as bool,
        4 => stdin: bool as bool,
        5 => stdout: bool as bool,
        6 => stderr: bool as bool,
    }

    AttachRequest {
        1 => container_id: String as string,
        2 => stdin: bool as bool,
        3 => tty: bool as bool,
        4 => stdout: bool as bool,
        5 => stderr: bool as bool,
    }

    PortForwardRequest {
        1 => pod_sandbox_id: String as string,
        2 => port: Vec<i32> as int32 repeated,
    }

    /// The URL on the runtime's streaming server; the response of exec, attach and port-forward.
    StreamResponse {
        1 => url: String as string,
    }
}
