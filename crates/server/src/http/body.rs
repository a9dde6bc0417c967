//! The body of a response on its connection: holds the request's seat, and reports to the connection's
//! activity, until the client has read it or gone away.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::activity::Exchange;
use crate::fairness::Seat;
use crate::response;

/// The body of a response.
pub struct Body {
    content: response::Body,
    /// Released when the body is dropped.
    seat: Option<Seat>,
    exchange: Option<Exchange>,
}

impl Body {
    pub(super) fn new(
        content: response::Body,
        seat: Option<Seat>,
        exchange: Option<Exchange>,
    ) -> Self {
        // There is nothing to read in an empty body, so it releases both at once.
        if matches!(content, response::Body::Whole(None)) {
            return Self {
                content,
                seat: None,
                exchange: None,
            };
        }
        let body = Self {
            content,
            seat,
            exchange,
        };
        body.note_progress();
        body
    }

    /// Tells the connection that the answer is ready or was read further. Watches are exempt: they may be
    /// silent, and end by themselves when nobody reads them.
    fn note_progress(&self) {
        if let (false, Some(exchange)) = (
            matches!(self.content, response::Body::Stream(_)),
            &self.exchange,
        ) {
            exchange.note_progress();
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        this.note_progress();
        let polled = Pin::new(&mut this.content).poll_frame(context);
        if let (Some(seat), Poll::Ready(Some(Ok(frame)))) = (&mut this.seat, &polled) {
            seat.note_read(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}
