//! Reads a request's body within its size limit and timeout.

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::limits;
use crate::status::ApiError;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reads a body. `expects_continue`: the client waits for permission to send it (`Expect: 100-continue`).
pub(super) async fn read<B>(
    body: B,
    expects_continue: bool,
    within: Duration,
) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let body = pin!(body);
    if body.size_hint().lower() > limits::BODY_BYTES_MAX as u64 && expects_continue {
        return Err(ApiError::too_large(limits::BODY_BYTES_MAX));
    }
    let read = tokio::time::timeout(within, collect(body)).await;
    read.unwrap_or_else(|_| Err(ApiError::bad_request("the body did not arrive in time")))
}

async fn collect<B>(mut body: Pin<&mut B>) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let known = body.size_hint().lower() > limits::BODY_BYTES_MAX as u64;
    if !known {
        let whole = Limited::new(body.as_mut(), limits::BODY_BYTES_MAX).collect();
        match whole.await {
            Ok(collected) => return Ok(collected.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {}
            Err(error) => {
                let why = format!("cannot read the body: {error}");
                return Err(ApiError::bad_request(why));
            }
        }
    }
    discard(body).await;
    Err(ApiError::too_large(limits::BODY_BYTES_MAX))
}

/// Reads and discards the rest: closing on a client that is still sending would reset the connection, and
/// the client would not see the answer.
async fn discard<B>(mut body: Pin<&mut B>)
where
    B: http_body::Body<Data = Bytes> + Send,
{
    let mut left = limits::REFUSED_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(size) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;

    const WITHIN: Duration = Duration::from_mins(1);

    async fn refused(body: impl http_body::Body<Data = Bytes, Error = Infallible> + Send) -> u16 {
        read(body, false, WITHIN).await.unwrap_err().code
    }

    #[tokio::test]
    async fn a_body_at_the_limit_is_taken() {
        let bytes = Bytes::from(vec![b' '; limits::BODY_BYTES_MAX]);
        let body = read(Full::new(bytes.clone()), false, WITHIN).await.unwrap();
        assert_eq!(body, bytes);
    }

    #[tokio::test]
    async fn a_body_above_the_limit_is_refused_whether_announced_or_not() {
        let bytes = Bytes::from(vec![b' '; limits::BODY_BYTES_MAX + 1]);
        assert_eq!(refused(Full::new(bytes)).await, 413);
        let piece = Bytes::from(vec![b' '; 1 << 20]);
        let pieces = (0..5).map(|_| Ok::<_, Infallible>(Frame::data(piece.clone())));
        assert_eq!(refused(StreamBody::new(stream::iter(pieces))).await, 413);
    }

    #[tokio::test]
    async fn a_body_without_end_is_not_read_for_ever() {
        let piece = Bytes::from(vec![b' '; 1 << 20]);
        let endless = stream::repeat_with(|| Ok::<_, Infallible>(Frame::data(piece.clone())));
        assert_eq!(refused(StreamBody::new(endless)).await, 413);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let never = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let error = read(never, false, Duration::from_millis(10)).await;
        assert_eq!(error.unwrap_err().code, 400);
    }

    #[tokio::test]
    async fn a_client_that_asks_first_is_answered_at_once() {
        let bytes = Bytes::from(vec![b' '; limits::BODY_BYTES_MAX + 1]);
        let error = read(Full::new(bytes), true, WITHIN).await.unwrap_err();
        assert_eq!(error.code, 413);
    }
}
