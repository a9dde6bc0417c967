//! The limits of HTTP/1.1 and HTTP/2. The TLS handshake (ALPN) decides the version; detecting it from the
//! first bytes would mean to wait for them without a timeout.

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::limits::{self, Timeouts};

/// HTTP/1.1, with upgrades to other protocols.
pub(super) fn http1(timeouts: Timeouts) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.headers)
        .max_headers(limits::HEADERS_MAX)
        .max_buf_size(limits::HEADER_BYTES_MAX as usize);
    builder
}

pub(super) fn http2() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::STREAMS_CANCELLED_MAX)
        .max_local_error_reset_streams(limits::STREAMS_RESET_MAX)
        .max_header_list_size(limits::HEADER_BYTES_MAX)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(limits::SEND_BUFFER_BYTES)
        .keep_alive_interval(limits::PING_EVERY)
        .keep_alive_timeout(limits::PING_WAIT);
    builder
}
